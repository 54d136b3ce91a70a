export interface Figures {
  title: string
  /** What there is to compare with, in the same units. */
  rows: { what: string; value: string; replaced?: string; aim?: string }[]
  limit: string
  /** What came out wrong, where that is looked at. */
  wrong?: readonly string[]
}

/** A table per benchmark, for people. */
export function printFigures(all: readonly Figures[]): void {
  for (const { title, rows, limit, wrong } of all) {
    console.log(`\n${title}`)
    console.log(`  ${'what'.padEnd(42)}${'here'.padStart(14)}${'replaced'.padStart(26)}${'aim'.padStart(12)}`)
    for (const { what, value, replaced = '', aim = '' } of rows)
      console.log(`  ${what.padEnd(42)}${value.padStart(14)}${replaced.padStart(26)}${aim.padStart(12)}`)
    console.log(`  ${limit}`)
    if (wrong) console.log(wrong.length === 0 ? '  all came out right' : `  WRONG: ${wrong.join('\n  WRONG: ')}`)
  }
}

export const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
export const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
