import type { CherrySimulator } from './simulator.ts'

export interface Received {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API answered
  body: any
}

/** Calls the simulated API as a client would; `path` is behind /v1. What is given in `headers` replaces the default. */
export async function call(
  simulator: CherrySimulator,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Received> {
  const response = await fetch(`${simulator.url}/v1${path}`, {
    method,
    headers: {
      authorization: 'Bearer cherry-token',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(5000),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : parsed(text) }
}

/** The status and the message of a refusal, in which {code, message} has to be all there is. */
export function refusal({ status, body }: Received): string {
  const isRefusal = body?.code === status && Object.keys(body).join() === 'code,message'
  return isRefusal ? `${status} ${body.message}` : `${status}, and no refusal`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
