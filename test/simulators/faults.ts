/**
 * error: an API error (code, status, message). http: any answer (status, body, content_type, headers). html: a proxy's page. empty: no body.
 * truncated: half of the JSON. cut: the connection breaks in the body. slow: the body drips for ms.
 * delay: done ms later. late: done at once, answered ms later.
 * drop-before: the connection breaks, nothing was done. drop-after-commit: it was done. timeout, timeout-after-commit: never an answer.
 * rate-limit: 429 (status, reset_s). locked: 423. action-error: the action ends with an error (code, message). action-hang: it never ends.
 * empty-list: 200 with nothing in it. partial-page: the second half is missing. stale: what is created is missing from lists for ms.
 * field: one field of the answer (a dotted path, * for every item) gets a value, or is left out without one.
 */
const kinds = [
  'error',
  'http',
  'html',
  'empty',
  'truncated',
  'cut',
  'slow',
  'delay',
  'late',
  'drop-before',
  'drop-after-commit',
  'timeout',
  'timeout-after-commit',
  'rate-limit',
  'locked',
  'action-error',
  'action-hang',
  'empty-list',
  'partial-page',
  'stale',
  'field',
] as const

export interface Fault {
  /** the label by which the request is counted: "POST /load_balancers/{id}", "ROBOT GET /server" */
  match?: string
  /** in place of match: a method and a regular expression for the path */
  method?: string
  path?: string
  kind: (typeof kinds)[number]
  /** so often; 1 if left out, -1 for ever */
  times?: number
  /** after so many that match */
  after?: number
  code?: string
  status?: number
  message?: string
  details?: unknown
  ms?: number
  body?: unknown
  content_type?: string
  /** beside those of the answer; null takes one away */
  headers?: Record<string, string | null>
  field?: string
  value?: unknown
  /** RateLimit-Reset lies so many seconds ahead (or, negative, behind) */
  reset_s?: number
}

const fields = new Set([
  'match',
  'method',
  'path',
  'kind',
  'times',
  'after',
  'code',
  'status',
  'message',
  'details',
  'ms',
  'body',
  'content_type',
  'headers',
  'field',
  'value',
  'reset_s',
])

interface Armed {
  fault: Fault
  skip: number
  left: number
}

export class FaultBook {
  #armed: Armed[] = []

  add(given: unknown): void {
    if ((given as { clear?: boolean }).clear === true) {
      this.#armed = []
      return
    }
    const fault = given as Fault
    for (const key of Object.keys(fault)) if (!fields.has(key)) throw new Error(`fault: unknown field ${key}`)
    if (!kinds.includes(fault.kind)) throw new Error(`fault: unknown kind ${fault.kind}`)
    if ((fault.match === undefined) === (fault.path === undefined)) throw new Error('fault: match or path is needed')
    this.#armed.push({ fault, skip: fault.after ?? 0, left: fault.times ?? 1 })
  }

  /** The fault that strikes this request, if any; it is used up by that. */
  take(label: string, method: string, path: string): Fault | undefined {
    for (const armed of this.#armed) {
      if (armed.left === 0 || !strikes(armed.fault, label, method, path)) continue
      if (armed.skip > 0) {
        armed.skip--
        continue
      }
      if (armed.left > 0) armed.left--
      return armed.fault
    }
    return undefined
  }
}

/** The JSON answer with the fault's field changed. */
export function bendField(body: unknown, fault: Fault): unknown {
  const copy = structuredClone(body)
  const last = (fault.field ?? '').split('.')
  const key = last.pop() ?? ''
  let holders: unknown[] = [copy]
  for (const part of last) holders = holders.flatMap((holder) => childrenOf(holder, part))
  for (const holder of holders) {
    if (typeof holder !== 'object' || holder === null) continue
    for (const own of key === '*' ? Object.keys(holder) : [key]) {
      if ('value' in fault) Reflect.set(holder, own, fault.value)
      else Reflect.deleteProperty(holder, own)
    }
  }
  return copy
}

/** A list answer with the first `keep` (0 to 1) of its items, and pagination that says that this is all. */
export function shortenList(body: unknown, keep: number): unknown {
  const copy = structuredClone(body) as Record<string, unknown>
  for (const [key, value] of Object.entries(copy)) {
    if (Array.isArray(value)) copy[key] = value.slice(0, Math.floor(value.length * keep))
  }
  const pagination = (copy.meta as { pagination?: Record<string, unknown> } | undefined)?.pagination
  if (pagination) Object.assign(pagination, { next_page: null, last_page: pagination.page })
  return Array.isArray(body) ? body.slice(0, Math.floor(body.length * keep)) : copy
}

function childrenOf(holder: unknown, part: string): unknown[] {
  if (typeof holder !== 'object' || holder === null) return []
  return part === '*' ? Object.values(holder) : [Reflect.get(holder, part)]
}

function strikes(fault: Fault, label: string, method: string, path: string): boolean {
  if (fault.match !== undefined) return fault.match === label
  return (fault.method === undefined || fault.method === method) && new RegExp(fault.path ?? '').test(path)
}
