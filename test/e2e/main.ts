import { caseFiles, loadCase } from './case.ts'
import { playCases } from './jobs.ts'
import { type Options, parseOptions, usage } from './options.ts'
import { closingLine, verdictText } from './report.ts'

// Whatever was started ends with this process, so there is nothing more to do at a signal.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const options = optionsOrExit()
const cases = caseFiles(options.paths)
  .map(loadCase)
  .filter(({ id }) => options.grep?.test(id) ?? true)
if (cases.length === 0) {
  console.error('no case matches')
  process.exit(2)
}
const verdicts = await playCases(cases, options, (verdict) => console.log(verdictText(verdict)))
console.log(closingLine(verdicts))
process.exit(verdicts.every(({ lines }) => lines.length === 0) ? 0 : 1)

function optionsOrExit(): Options {
  const args = process.argv.slice(2)
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseOptions(args)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`)
    process.exit(2)
  }
}
