import type { Fault } from '../faults.ts'

type Given = Record<string, unknown>

/**
 * A fault in the words of this API: `match` is a method and a regular expression for the path, /v1 included, or a label
 * ("PUT /ips/{id}"); `code` is the status of an error; `delay` in ms is of an answer to what is done at once.
 */
export function readFault(given: unknown): unknown {
  if (given === 'clear') return { clear: true }
  const { match, code, delay, retry_after_s, kind, ...rest } = given as Given
  return {
    ...rest,
    ...(match === undefined ? {} : splitMatch(String(match))),
    ...(code === undefined ? {} : { status: Number(code) }),
    ...(delay === undefined ? {} : { ms: delay }),
    ...(retry_after_s === undefined ? {} : { reset_s: retry_after_s }),
    ...(kind === undefined ? {} : { kind: otherNames[kind as string] ?? kind }),
  }
}

const otherNames: Record<string, Fault['kind']> = {
  delay: 'late',
  'delay-before': 'delay',
  'empty-body': 'empty',
  malformed: 'truncated',
  'truncated-list': 'partial-page',
}

function splitMatch(match: string): { method: string; path: string } {
  const [method = '', path = ''] = match.split(/ (.*)/)
  return { method, path: path.includes('{id}') ? `^/v1${path.replaceAll('{id}', '[^/]+')}$` : path }
}
