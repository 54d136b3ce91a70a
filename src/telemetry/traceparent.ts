import { randomBytes } from 'node:crypto'

/** A W3C trace context of version 00 for a new trace: `00-{trace id}-{span id}-01`. */
export function newTraceparent(): string {
  const bytes = randomBytes(24).toString('hex')
  return `00-${bytes.slice(0, 32)}-${bytes.slice(32)}-01`
}

/** The trace id in a traceparent, as the logs name it; undefined when it is none. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  const id = traceparent && /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-|$)/.exec(traceparent)?.[1]
  return id && !/^0+$/.test(id) ? id : undefined
}
