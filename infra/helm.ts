import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildInto, cacheDir, go, requireGo, whyNot } from './go-cache.ts'

export const CHART = join(import.meta.dirname, '..', 'k8s', 'chart')

const HELM = { module: 'helm.sh/helm/v4', version: 'v4.3.2', go: '1.26' } as const

/** Path of a helm of one known version, built from Go's module proxy unless the cache has it. Throws `CannotBuild` without Go. */
export async function buildHelm(log: (line: string) => void = () => {}): Promise<string> {
  const dir = helmDir()
  const helm = join(dir, 'helm')
  if (existsSync(helm)) return helm
  await requireGo('helm', HELM.go)
  log(`building helm ${HELM.version} into ${dir} (a minute or two the first time)`)
  await buildInto(dir, async (aside) => {
    const args = ['install', '-ldflags', '-s -w', `${HELM.module}/cmd/helm@${HELM.version}`]
    await go(args, { cwd: tmpdir(), env: { GOBIN: aside } })
  })
  return helm
}

/** What keeps helm from being there; undefined if nothing does. Builds nothing. */
export const whyNoHelm = () => whyNot(helmDir(), 'helm', HELM.go)

const helmDir = () => cacheDir(`helm-${HELM.version}-${process.platform}-${process.arch}`)

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

export interface HelmOptions {
  /** Values that count over the chart's. */
  values?: object
  env?: Record<string, string>
}

/** Runs helm to its end; what it refuses is told by the exit code and on standard error. */
export async function helm(args: readonly string[], { values, env }: HelmOptions = {}): Promise<Ran> {
  const path = await buildHelm()
  return new Promise((resolve, reject) => {
    const child = execFile(
      path,
      values === undefined ? args : [...args, '--values', '-'],
      { env: { ...process.env, ...env }, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number') return reject(error)
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr })
      },
    )
    child.stdin?.end(values === undefined ? '' : JSON.stringify(values))
  })
}

/** The chart's manifests for these values, as text, or an error with what helm refused. */
export async function render(values: object, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await helm(['template', 'windlass', CHART, '--namespace', 'windlass', ...args], {
    values,
  })
  if (code !== 0) throw new Error(stderr.trim())
  return stdout
}
