import { statSync } from 'node:fs'
import { permanent } from '../errors.ts'
import { codeOf } from './files.ts'
import type { Parser } from './grammar.ts'
import { readFile } from './read-file.ts'
import type { Secret } from './types.ts'

/** A secret whose value was given as it is. */
export class FixedSecret implements Secret {
  readonly name: string
  readonly fault = undefined
  readonly #value: string

  constructor(name: string, value: string) {
    this.name = name
    this.#value = value
  }

  read(): string {
    return this.#value
  }
}

export interface FileSecretOptions {
  name: string
  path: string
  /** Tells a good value from a bad one. */
  check?: Parser<string>
  /** Monotonic milliseconds. */
  now?: () => number
}

/**
 * A secret in a file, blanks and line breaks around it dropped. `read` looks at most once a second whether the file has changed,
 * and keeps the last good value while the file is missing, empty or wrong; `fault` tells.
 * Throws `permanent` when there is no good value to begin with.
 */
export class FileSecret implements Secret {
  readonly name: string
  readonly path: string
  readonly #check: Parser<string> | undefined
  readonly #now: () => number
  #value: string | undefined
  #fault: string | undefined
  #identity = ''
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor({ name, path, check, now = () => performance.now() }: FileSecretOptions) {
    this.name = name
    this.path = path
    this.#check = check
    this.#now = now
    this.#look()
    if (this.#value === undefined) throw permanent(this.#fault ?? 'is empty')
  }

  /** What is wrong with the file now, while the value from before is still in use. */
  get fault(): string | undefined {
    this.#look()
    return this.#fault
  }

  read(): string {
    this.#look()
    return this.#value ?? ''
  }

  #look(): void {
    const nowMs = this.#now()
    if (nowMs - this.#lookedAtMs < LOOK_PERIOD_MS) return
    this.#lookedAtMs = nowMs
    try {
      const before = identityOf(this.path)
      if (before === this.#identity) return
      const content = readFile(this.path).toString().trim()
      this.#identity = before
      this.#accept(content)
    } catch (error) {
      this.#identity = ''
      // Only the code: the message has the path, in whose place somebody may have written the secret itself.
      this.#fault = `can't be read (${codeOf(error)})`
    }
  }

  #accept(content: string): void {
    const parsed = content === '' ? { fault: 'is empty' } : (this.#check?.(content) ?? { value: content })
    if ('fault' in parsed) {
      this.#fault = parsed.fault
    } else {
      this.#fault = undefined
      this.#value = parsed.value
    }
  }
}

const LOOK_PERIOD_MS = 1000

// A mounted Kubernetes secret is replaced by turning a symbolic link: another inode. An edit in place moves the time or the size.
function identityOf(path: string): string {
  const { dev, ino, size, mtimeNs } = statSync(path, { bigint: true })
  return `${dev} ${ino} ${size} ${mtimeNs}`
}
