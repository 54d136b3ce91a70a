/** How one case ended. */
export interface Verdict {
  id: string
  seconds: number
  /** What is wrong, in lines; none if it passed. */
  lines: string[]
  /** Where its logs are. */
  dir: string
}

const shownLines = 60

export function verdictText({ id, seconds, lines, dir }: Verdict): string {
  if (lines.length === 0) return `ok   ${id} (${seconds.toFixed(1)} s)`
  const shown = lines.slice(0, shownLines).flatMap((line) => line.split('\n'))
  const more = lines.length > shownLines ? [`... ${lines.length - shownLines} more`] : []
  return [`FAIL ${id} (${seconds.toFixed(1)} s)  logs: ${dir}`, ...[...shown, ...more].map((x) => `     ${x}`)].join(
    '\n',
  )
}

export function closingLine(verdicts: Verdict[]): string {
  const failed = verdicts.filter((verdict) => verdict.lines.length > 0).length
  return `${verdicts.length - failed} passed, ${failed} failed`
}
