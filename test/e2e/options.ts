import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Pace } from './watch.ts'

export interface Options {
  /** Case files and folders. */
  paths: string[]
  grep?: RegExp
  jobs: number
  /** Shell command of another controller. */
  command?: string
  /** Of a Redis that runs already; each job starts its own without. */
  redisUrl?: string
  pace: Pace
  verbose: boolean
  keep: boolean
}

export const usage = `usage: node test/e2e/main.ts [options] [CASE.yaml | FOLDER ...]
Plays the recorded cases (all of them, if none are named) against \`windlass all\` on a real kube-apiserver.

  --grep RE          only cases whose id matches
  --jobs N           so many at a time, each with its own API server and Redis (default 2)
  --controller CMD   what to run in place of \`windlass all\`: a shell command, which gets the flags as arguments
  --redis URL        a Redis that runs already
  --min-quiet S      nothing counts as settled before S quiet seconds
  --patience F       multiplies all time limits, but not the quiet times
  --verbose          print every step
  --keep             keep the logs of cases that passed too`

/** Throws a `TypeError` with a sentence for the user. */
export function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      grep: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      controller: { type: 'string' },
      redis: { type: 'string' },
      'min-quiet': { type: 'string', default: '0' },
      patience: { type: 'string', default: '1' },
      verbose: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  })
  return {
    paths: positionals.length > 0 ? positionals : [join(import.meta.dirname, 'cases')],
    grep: values.grep === undefined ? undefined : new RegExp(values.grep),
    jobs: Math.max(1, Math.trunc(positive('--jobs', values.jobs))),
    command: values.controller,
    redisUrl: values.redis,
    pace: {
      minQuietS: positive('--min-quiet', values['min-quiet']),
      patience: positive('--patience', values.patience),
    },
    verbose: values.verbose,
    keep: values.keep,
  }
}

function positive(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isFinite(number) || number < 0) throw new TypeError(`${name} takes a number, not ${text}`)
  return number
}
