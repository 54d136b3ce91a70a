import type { HttpResponse } from '../../http/client.ts'

/** What the headers of an answer say of the account's limit: requests an hour, and those that are left. */
export const limitOf = (headers: HttpResponse['headers']) => ({
  ...readingOf('limit', headers['ratelimit-limit']),
  ...readingOf('remaining', headers['ratelimit-remaining']),
})

const SHORTEST_BLOCK_MS = 1000
const LONGEST_BLOCK_MS = 3_600_000
const UNKNOWN_BLOCK_MS = 3000

const WINDOW_MS = 3_600_000
/** So long requests gather again before anybody asks: one after the other they come back all the time. */
const GATHER_MS = 10_000

/**
 * When the API takes requests again: its own announcement, within what is believable. Where the announced time is that at which the
 * account has all its requests again, as the documentation says, the first of them are there long before.
 */
export function resetOf(headers: HttpResponse['headers']): number {
  const now = Date.now()
  const afterS = Number(headers['retry-after'])
  const resetS = Number(headers['ratelimit-reset'])
  const { limit, remaining = 0 } = limitOf(headers)
  let said = afterS > 0 ? now + afterS * 1000 : resetS > 0 ? resetS * 1000 : now + UNKNOWN_BLOCK_MS
  if (!(afterS > 0) && limit !== undefined && limit > 0) {
    const fullMs = ((limit - remaining) / limit) * WINDOW_MS
    if (Math.abs(said - now - fullMs) < WINDOW_MS / 20) said = now + Math.max(GATHER_MS, WINDOW_MS / limit)
  }
  return Math.min(Math.max(said, now + SHORTEST_BLOCK_MS), now + LONGEST_BLOCK_MS)
}

function readingOf<K extends string>(name: K, header: string | string[] | undefined): { [P in K]?: number } {
  const value = typeof header === 'string' && header !== '' ? Number(header) : Number.NaN
  return Number.isFinite(value) ? ({ [name]: value } as { [P in K]?: number }) : {}
}
