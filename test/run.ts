import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildHelm, whyNoHelm } from '../infra/helm.ts'
import { buildBinaries, buildScheduler, whyNotHere } from './apiserver/build.ts'
import { type Count, TapOutput } from './run/tap-output.ts'

// All that `npm test` checks. The last line says how much passed and failed; the exit code says whether all did.

process.chdir(join(import.meta.dirname, '..'))
const total: Count = { passed: 0, failed: 0 }

await stage('types', () => asOne('tsc', ['--noEmit']))
await stage('style', () => asOne('biome', ['check', '.']))

const noApiServer = await whyNotHere()
if (noApiServer === undefined) await stage('the real kube-apiserver', () => built(buildBinaries, buildScheduler))
else leaveOut('the real kube-apiserver', noApiServer)
const noHelm = await whyNoHelm()
if (noHelm === undefined) await stage('helm', () => built(buildHelm))
else leaveOut('helm', noHelm)

await stage('tests', () => tap(testFiles()))
if (noApiServer === undefined) {
  await stage('integration on the real kube-apiserver', () =>
    tap(globSync('test/integration/*.test.ts').sort(), { WINDLASS_TEST_KUBERNETES: 'apiserver' }),
  )
  await stage('recorded cases on the real kube-apiserver', recordedCases)
}

console.log(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

async function stage(name: string, run: () => Promise<Count>): Promise<void> {
  const startedAt = performance.now()
  console.log(`== ${name}`)
  const { passed, failed } = await run()
  total.passed += passed
  total.failed += failed
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`== ${name}: ${failed === 0 ? 'good' : `${failed} failed`} (${seconds} s)\n`)
}

/** Without Go the tests that need it are left out, which is no way to pass in CI. */
function leaveOut(what: string, why: string): void {
  console.log(`== ${what}: left out, with the tests that need it: ${why}\n`)
  if (process.env.CI === 'true') total.failed++
}

async function built(...builds: ((log: (line: string) => void) => Promise<unknown>)[]): Promise<Count> {
  try {
    for (const build of builds) await build(console.log)
    return { passed: 1, failed: 0 }
  } catch (error) {
    console.log(error)
    return { passed: 0, failed: 1 }
  }
}

function testFiles(): string[] {
  const needs = (file: string, part: RegExp) => part.test(readFileSync(file, 'utf8'))
  return globSync('test/**/*.test.ts')
    .sort()
    .filter((file) => noApiServer === undefined || !needs(file, /apiserver\/start\.ts|'\.\/start\.ts'/))
    .filter((file) => noHelm === undefined || !needs(file, /infra\/(helm|manifests)\.ts/))
}

async function tap(files: string[], env: Record<string, string> = {}): Promise<Count> {
  const output = new TapOutput(console.log)
  const args = ['run', '--reporter=tap', '--no-color', '--disable-coverage', '--jobs=2', '--timeout=300']
  const strict = ['--no-bail', '--fail-skip', '--fail-todo', '--fail-only']
  const code = await run('tap', [...args, ...strict, ...files], (line) => output.line(line), env)
  const { passed, failed } = output.count ?? { passed: 0, failed: 0 }
  // A run that broke off, or that failed beside its assertions, did not pass.
  return { passed, failed: code === 0 && output.count ? failed : Math.max(failed, 1) }
}

async function recordedCases(): Promise<Count> {
  let count: Count | undefined
  const jobs = Math.min(3, Math.max(2, availableParallelism()))
  const code = await run(process.execPath, ['test/e2e/main.ts', `--jobs=${jobs}`], (line) => {
    const closing = /^(\d+) passed, (\d+) failed$/.exec(line)
    if (closing) count = { passed: Number(closing[1]), failed: Number(closing[2]) }
    else console.log(line)
  })
  const { passed, failed } = count ?? { passed: 0, failed: 0 }
  return { passed, failed: code === 0 && count ? failed : Math.max(failed, 1) }
}

/** A tool that says yes or no. */
async function asOne(command: string, args: string[]): Promise<Count> {
  const code = await run(command, args, (line) => console.log(line))
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

/** Resolves to the exit code once all lines of its standard output were seen. */
function run(
  command: string,
  args: string[],
  onLine: (line: string) => void,
  env: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env, PATH: `${join(process.cwd(), 'node_modules/.bin')}:${process.env.PATH}` },
    })
    createInterface({ input: child.stdout }).on('line', onLine)
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
}
