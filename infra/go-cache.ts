import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** Why something can't be built here, in a sentence that says what to install. */
export class CannotBuild extends Error {}

/** Folder of what was built, outside of the work tree. The name has to change with all that goes into the build. */
export function cacheDir(name: string): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(cache, 'windlass', name)
}

/** Built aside and renamed as a whole: of two builds at once one wins, and nobody ever starts half a file. */
export async function buildInto(dir: string, build: (aside: string) => Promise<void>): Promise<void> {
  mkdirSync(dirname(dir), { recursive: true })
  const aside = mkdtempSync(`${dir}.`)
  try {
    await build(aside)
    try {
      renameSync(aside, dir)
    } catch (error) {
      if (!existsSync(dir)) throw error
    }
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

export async function go(args: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const { stdout } = await run('go', args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    maxBuffer: 1 << 26,
  })
  return stdout
}

/** What keeps something from being built here; undefined if nothing does, or if `dir` has it already. Builds nothing. */
export async function whyNot(dir: string, what: string, wanted: string): Promise<string | undefined> {
  if (existsSync(dir)) return undefined
  try {
    await requireGo(what, wanted)
    return undefined
  } catch (error) {
    if (error instanceof CannotBuild) return error.message
    throw error
  }
}

/**
 * Throws `CannotBuild` where Go is missing or older than `wanted`.
 * @param what for people: `the real kube-apiserver`
 * @param wanted `1.26`
 */
export async function requireGo(what: string, wanted: string): Promise<void> {
  let found: string
  try {
    // Without this an old Go would quietly download a newer one.
    found = (await go(['env', 'GOVERSION'], { env: { GOTOOLCHAIN: 'local' } })).trim().replace(/^go/, '')
  } catch {
    throw new CannotBuild(`${what} needs Go ${wanted} or newer to be built: no \`go\` on the PATH`)
  }
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number)
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  throw new CannotBuild(`${what} needs Go ${wanted} or newer to be built: \`go\` here is ${found}`)
}

const run = promisify(execFile)
