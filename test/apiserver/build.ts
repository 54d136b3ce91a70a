import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildInto, CannotBuild, cacheDir, go, requireGo, whyNot } from '../../infra/go-cache.ts'

export interface Binaries {
  etcd: string
  kubeApiserver: string
}

/**
 * Paths of etcd and kube-apiserver, built from this folder's Go module unless the cache already has them. The cache is
 * outside of the work tree and its name is a hash of all that goes into a build, so a changed version is a new folder.
 * Throws `CannotBuild` where Go is missing or too old.
 */
export async function buildBinaries(log: (line: string) => void = () => {}): Promise<Binaries> {
  const dir = binariesDir()
  const binaries = binariesIn(dir)
  if (existsSync(binaries.etcd) && existsSync(binaries.kubeApiserver)) return binaries

  await requireGo(WHAT, goVersion())
  log(`building etcd and kube-apiserver ${kubernetesVersion()} into ${dir} (some minutes the first time)`)
  await buildInto(dir, async (aside) => {
    await go(['build', '-mod=readonly', '-ldflags', linkerFlags(), '-o', aside, './cmd/...'], {
      cwd: import.meta.dirname,
    })
  })
  return binaries
}

/** Path of kube-scheduler, which only few tests need and which is therefore built apart. */
export async function buildScheduler(log: (line: string) => void = () => {}): Promise<string> {
  const dir = `${binariesDir()}-scheduler`
  const scheduler = join(dir, 'kube-scheduler')
  if (existsSync(scheduler)) return scheduler
  await requireGo(WHAT, goVersion())
  const what = 'k8s.io/kubernetes/cmd/kube-scheduler'
  log(`building kube-scheduler ${kubernetesVersion()} into ${dir}`)
  await buildInto(dir, async (aside) => {
    await go(['build', '-mod=readonly', '-ldflags', linkerFlags(), '-o', aside, what], { cwd: import.meta.dirname })
  })
  return scheduler
}

/** What keeps the real API server from running here; undefined if nothing does. Builds nothing. */
export const whyNotHere = () => whyNot(binariesDir(), WHAT, goVersion())

const WHAT = 'the real kube-apiserver'

function binariesIn(dir: string): Binaries {
  return { etcd: join(dir, 'etcd'), kubeApiserver: join(dir, 'kube-apiserver') }
}

function binariesDir(): string {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', ...globSync('**/*.go', { cwd: import.meta.dirname }).sort()]) {
    hash.update(readFileSync(join(import.meta.dirname, file)))
  }
  hash.update(`${process.platform} ${process.arch} ${linkerFlags()}`)
  return cacheDir(`apiserver-${hash.digest('hex').slice(0, 16)}`)
}

function goMod(pattern: RegExp): string {
  const found = pattern.exec(readFileSync(join(import.meta.dirname, 'go.mod'), 'utf8'))?.[1]
  if (!found) throw new Error(`test/apiserver/go.mod has no line like ${pattern.source}`)
  return found
}

function kubernetesVersion(): string {
  return goMod(/^\s*k8s\.io\/kubernetes (v\S+)$/m)
}

function goVersion(): string {
  return goMod(/^go (\d+\.\d+)/m)
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
