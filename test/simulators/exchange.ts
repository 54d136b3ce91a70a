import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { bendField, type Fault, shortenList } from './faults.ts'
import type { Account, Hub, LogEntry } from './hub.ts'
import { Refusal } from './refusal.ts'

/** How a fault bends what a request starts. */
export interface Twist {
  /** the action ends with this error */
  fails?: { code: string; message: string }
  /** the action never ends */
  endless?: boolean
  /** what is created is missing from lists for so long, ms */
  staleMs?: number
}

export interface Request {
  method: string
  /** without prefix and query */
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  text: string
  remoteAddress: string
}

export interface Answer {
  status: number
  body?: unknown
  /** for the counters */
  code?: string
  headers?: Record<string, string>
}

/** One of a simulator's web services. */
export interface Face {
  label: (request: Request) => string
  /** Throws a `Refusal`. */
  answer: (request: Request, twist: Twist) => Answer
  failure: (refusal: Refusal) => Answer
  /** What an error fault stands for; `code` if it names none itself. */
  simulated: (fault: Fault, code?: string) => Refusal
  rateLimited: (fault: Fault) => Answer
}

/** Answers one request, with the fault that waits for it. */
export async function exchange(
  hub: Hub<Account>,
  face: Face,
  request: Request,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const label = face.label(request)
  const fault = hub.faults.take(label, request.method, request.path)
  const entry: LogEntry = {
    at: new Date().toISOString(),
    label,
    method: request.method,
    path: request.path,
    query: request.query.toString(),
    body: parsed(request.text),
    correlation_id: randomBytes(8).toString('hex'),
    ...(fault ? { fault: fault.kind } : {}),
  }
  hub.begin(entry)
  response.setHeader('X-Correlation-Id', entry.correlation_id)
  const mutates = request.method !== 'GET'
  if (mutates) hub.mutating++
  try {
    const answer = await answerOrBreak(face, request, message, response, fault)
    if (!answer) hub.end(entry, 0)
    else {
      hub.end(entry, answer.status, answer.code)
      await send(response, answer, fault)
    }
  } finally {
    if (mutates) hub.mutating--
  }
}

async function answerOrBreak(
  face: Face,
  request: Request,
  message: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
): Promise<Answer | undefined> {
  const run = (twist: Twist = {}): Answer => attempt(face, () => face.answer(request, twist))
  switch (fault?.kind) {
    case 'drop-before':
      message.socket.destroy()
      return undefined
    case 'drop-after-commit':
      run()
      message.socket.destroy()
      return undefined
    case 'timeout':
    case 'timeout-after-commit':
      if (fault.kind === 'timeout-after-commit') run()
      await closed(response)
      return undefined
    case 'delay':
      await sleep(fault.ms ?? 1000, undefined, { ref: false })
      return run()
    case 'late': {
      const answer = run()
      await sleep(fault.ms ?? 1000, undefined, { ref: false })
      return answer
    }
    case 'error':
      return face.failure(face.simulated(fault))
    case 'locked':
      return face.failure(face.simulated(fault, 'locked'))
    case 'rate-limit':
      return face.rateLimited(fault)
    case 'http':
    case 'html':
    case 'empty':
      return fixedAnswer(fault)
    case 'action-error':
      return run({ fails: { code: fault.code ?? 'action_failed', message: fault.message ?? 'Action failed' } })
    case 'action-hang':
      return run({ endless: true })
    case 'stale':
      return run({ staleMs: fault.ms ?? 1000 })
    case 'empty-list':
    case 'partial-page': {
      const answer = run()
      return { ...answer, body: shortenList(answer.body, fault.kind === 'empty-list' ? 0 : 0.5) }
    }
    case 'field': {
      const answer = run()
      return { ...answer, body: bendField(answer.body, fault) }
    }
    default:
      return run()
  }
}

function attempt(face: Face, run: () => Answer): Answer {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return face.failure(error)
  }
}

function fixedAnswer(fault: Fault): Answer {
  if (fault.kind === 'empty') return { status: fault.status ?? 200, headers: { 'Content-Type': 'application/json' } }
  const html = fault.kind === 'html'
  const page = '<html><body><h1>502 Bad Gateway</h1></body></html>'
  return {
    status: fault.status ?? (html ? 502 : 200),
    body: fault.body ?? (html ? page : ''),
    headers: { 'Content-Type': fault.content_type ?? (html ? 'text/html' : 'application/json') },
  }
}

async function send(response: ServerResponse, answer: Answer, fault: Fault | undefined): Promise<void> {
  const isText = typeof answer.body === 'string'
  const text = answer.body === undefined ? '' : isText ? (answer.body as string) : JSON.stringify(answer.body)
  for (const [name, value] of Object.entries({ ...answer.headers, ...fault?.headers })) {
    if (value !== null) response.setHeader(name, value)
  }
  if (answer.body !== undefined && !response.hasHeader('Content-Type')) {
    response.setHeader('Content-Type', isText ? 'text/plain' : 'application/json')
  }
  response.statusCode = answer.status
  const bytes = Buffer.from(text)
  const half = bytes.subarray(0, Math.floor(bytes.length / 2))
  if (fault?.kind === 'truncated') response.end(half)
  else if (fault?.kind === 'cut') {
    response.setHeader('Content-Length', bytes.length)
    response.write(half, () => response.destroy())
  } else if (fault?.kind === 'slow') await drip(response, bytes, fault.ms ?? 1000)
  else if (answer.status === 204) response.end()
  else {
    response.setHeader('Content-Length', bytes.length)
    response.end(bytes)
  }
}

async function drip(response: ServerResponse, bytes: Buffer, ms: number): Promise<void> {
  const pieces = 10
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  for (let at = 0; at < bytes.length && !response.closed; at += size) {
    response.write(bytes.subarray(at, at + size))
    await sleep(ms / pieces, undefined, { ref: false })
  }
  response.end()
}

function closed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.closed) resolve()
    else response.once('close', resolve)
  })
}

function parsed(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
