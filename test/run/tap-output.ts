/** How many assertions passed and failed. */
export interface Count {
  passed: number
  failed: number
}

/**
 * Reads the TAP of a whole `tap run` line by line. Prints a line for each test file that passed, and of each that
 * failed what is not "ok".
 */
export class TapOutput {
  readonly #print: (line: string) => void
  /** What is said about the file whose verdict is still to come. */
  #pending: string[] = []
  #lastFailed = false
  #inDiagnostics = false
  #count: Count | undefined

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  /** As the run itself counted at its end; undefined if it didn't get that far. */
  get count(): Count | undefined {
    return this.#count
  }

  line(line: string): void {
    if (/^ {2,}/.test(line)) this.#inside(line)
    else if (/^(not )?ok /.test(line)) this.#verdict(line)
    else if (line.startsWith('# {')) this.#summary(line)
    else if (line.startsWith('Bail out!')) this.#print(line)
  }

  #inside(line: string): void {
    // Indented by two: the diagnostics of the verdict before, not what a file says.
    if (line === '  ---') this.#inDiagnostics = true
    if (!this.#inDiagnostics) this.#pending.push(line)
    else if (this.#lastFailed) this.#print(line)
    if (line === '  ...') this.#inDiagnostics = false
  }

  #verdict(line: string): void {
    this.#lastFailed = line.startsWith('not')
    if (this.#lastFailed) {
      for (const said of this.#pending) if (!/^ *(ok |1\.\.\d|#)|^\s*$/.test(said)) this.#print(said)
    }
    this.#print(line)
    this.#pending = []
  }

  #summary(line: string): void {
    const number = (name: string) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0)
    this.#count = { passed: number('pass'), failed: number('total') - number('pass') }
  }
}
