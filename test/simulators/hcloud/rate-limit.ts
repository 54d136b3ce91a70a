/** A bucket of requests that fills up evenly over an hour, as the API's. */
export class RateLimit {
  readonly limit: number
  #remaining: number
  #at = Date.now()

  constructor(limit: number, remaining = limit) {
    this.limit = limit
    this.#remaining = remaining
  }

  /** false: the request is one too many. */
  take(): boolean {
    this.#refill()
    if (this.#remaining < 1) return false
    this.#remaining--
    return true
  }

  headers(): Record<string, string> {
    this.#refill()
    const secondsToFull = ((this.limit - this.#remaining) / this.limit) * 3600
    return {
      'RateLimit-Limit': String(this.limit),
      'RateLimit-Remaining': String(Math.floor(this.#remaining)),
      'RateLimit-Reset': String(Math.ceil(Date.now() / 1000 + secondsToFull)),
    }
  }

  #refill(): void {
    const now = Date.now()
    this.#remaining = Math.min(this.limit, this.#remaining + ((now - this.#at) / 3_600_000) * this.limit)
    this.#at = now
  }
}
