import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Binaries {
  etcd: string
  kubeApiserver: string
}

/** Why the real API server cannot be built here, in a sentence that says what to install. */
export class CannotBuild extends Error {}

/**
 * Paths of etcd and kube-apiserver, built from this folder's Go module unless the cache already has them. The cache is
 * outside of the work tree and its name is a hash of all that goes into a build, so a changed version is a new folder.
 * Throws `CannotBuild` where Go is missing or too old.
 */
export async function buildBinaries(log: (line: string) => void = () => {}): Promise<Binaries> {
  const dir = cacheDir()
  const binaries = binariesIn(dir)
  if (existsSync(binaries.etcd) && existsSync(binaries.kubeApiserver)) return binaries

  await requireGo()
  log(`building etcd and kube-apiserver ${kubernetesVersion()} into ${dir} (some minutes the first time)`)
  mkdirSync(join(dir, '..'), { recursive: true })
  // Built aside and renamed as a whole: of two builds at once one wins, and nobody ever starts half a file.
  const aside = mkdtempSync(`${dir}.`)
  try {
    await run('go', ['build', '-mod=readonly', '-ldflags', linkerFlags(), '-o', aside, './cmd/...'], {
      cwd: import.meta.dirname,
      maxBuffer: 1 << 26,
    })
    try {
      renameSync(aside, dir)
    } catch (error) {
      if (!existsSync(binaries.kubeApiserver)) throw error
    }
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  return binaries
}

/** What keeps the real API server from running here; undefined if nothing does. Builds nothing. */
export async function whyNotHere(): Promise<string | undefined> {
  if (existsSync(cacheDir())) return undefined
  try {
    await requireGo()
    return undefined
  } catch (error) {
    if (error instanceof CannotBuild) return error.message
    throw error
  }
}

const run = promisify(execFile)

function binariesIn(dir: string): Binaries {
  return { etcd: join(dir, 'etcd'), kubeApiserver: join(dir, 'kube-apiserver') }
}

function cacheDir(): string {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', ...globSync('**/*.go', { cwd: import.meta.dirname }).sort()]) {
    hash.update(readFileSync(join(import.meta.dirname, file)))
  }
  hash.update(`${process.platform} ${process.arch} ${linkerFlags()}`)
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(cache, 'windlass', `apiserver-${hash.digest('hex').slice(0, 16)}`)
}

function goMod(pattern: RegExp): string {
  const found = pattern.exec(readFileSync(join(import.meta.dirname, 'go.mod'), 'utf8'))?.[1]
  if (!found) throw new Error(`test/apiserver/go.mod has no line like ${pattern.source}`)
  return found
}

function kubernetesVersion(): string {
  return goMod(/^\s*k8s\.io\/kubernetes (v\S+)$/m)
}

async function requireGo(): Promise<void> {
  const wanted = goMod(/^go (\d+\.\d+)/m)
  let found: string
  try {
    const { stdout } = await run('go', ['env', 'GOVERSION'], {
      // Without this an old Go would quietly download a newer one.
      env: { ...process.env, GOTOOLCHAIN: 'local' },
    })
    found = stdout.trim().replace(/^go/, '')
  } catch {
    throw new CannotBuild(`the real kube-apiserver needs Go ${wanted} or newer to be built: no \`go\` on the PATH`)
  }
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number)
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  throw new CannotBuild(`the real kube-apiserver needs Go ${wanted} or newer to be built: \`go\` here is ${found}`)
}

/** Built from a module, a server does not know its own version; clients look at it. */
function linkerFlags(): string {
  const version = kubernetesVersion()
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? []
  const values = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
  const flags = ['-s', '-w']
  for (const [name, value] of Object.entries(values)) {
    for (const home of ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']) {
      flags.push('-X', `${home}.${name}=${value}`)
    }
  }
  return flags.join(' ')
}

if (import.meta.main) {
  try {
    const { etcd, kubeApiserver } = await buildBinaries((line) => console.error(line))
    console.log(`${etcd}\n${kubeApiserver}`)
  } catch (error) {
    console.error(error instanceof CannotBuild ? error.message : error)
    process.exitCode = 1
  }
}
