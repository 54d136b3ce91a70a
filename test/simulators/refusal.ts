/** An answer of a simulated API that is not a success. */
export class Refusal extends Error {
  readonly code: string
  readonly status: number
  readonly details: unknown

  constructor(code: string, message: string, details: unknown, status: number) {
    super(message)
    this.code = code
    this.status = status
    this.details = details
  }
}
