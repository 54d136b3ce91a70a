import type { HcloudSimulator } from './simulator.ts'

export const token = 'k'.repeat(64)

export interface Received {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API answered
  body: any
}

/** Calls the simulated Cloud API as a client would; what is given in `headers` replaces the default. */
export async function call(
  simulator: HcloudSimulator,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Received> {
  const response = await fetch(`${simulator.apiUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(5000),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : parsed(text) }
}

/** "CODE field,field" of a refusal, the code alone if no fields are named, the status if it is none. */
export function refusal({ status, body }: Received): string {
  if (!body?.error) return String(status)
  const fields = (body.error.details?.fields ?? []) as { name: string }[]
  return [body.error.code, fields.map((field) => field.name).join(',')].filter((part) => part !== '').join(' ')
}

/** The action's end, asked for until it is there. */
export async function finished(simulator: HcloudSimulator, received: Received): Promise<Received['body']> {
  for (;;) {
    const answer = await call(simulator, 'GET', `/actions/${received.body.action.id}`)
    if (answer.body.action.status !== 'running') return answer.body.action
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
