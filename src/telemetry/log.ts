import { type DestinationStream, type Logger, pino } from 'pino'
import { excerpt } from '../errors.ts'

export type { Logger } from 'pino'

/** Paths that never reach a log line, whatever object is logged by mistake. */
const SECRETS = ['authorization', 'token', 'password', 'apiKey', 'secret', 'webhookKeys']
const REDACTED = [...SECRETS, ...SECRETS.map((name) => `*.${name}`), 'headers.authorization', '*.headers.authorization']

/** One JSON line per decision. The message is a constant string; what varies are fields. */
export function createLogger(
  options: { level?: string; destination?: DestinationStream /** 1, standard output, if absent. */; fd?: number } = {},
): Logger {
  return pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withExcerpts },
      redact: { paths: REDACTED, censor: '[redacted]' },
    },
    options.destination ?? pino.destination({ dest: options.fd ?? 1, sync: false }),
  )
}

const withExcerpts = (fields: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? excerpt(value, LONGEST) : value]),
  )

/** An error with its causes is longer than one alone. */
const LONGEST = 8192
