import type { CloudRequest } from './cloud-metrics.ts'

/** What each API is asked with. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  hcloud: 'Hetzner Cloud refuses the token: put HCLOUD_TOKEN right',
  robot: 'Hetzner Robot refuses the login: put ROBOT_USER and ROBOT_PASSWORD right',
  cherry: 'Cherry Servers refuses the API key: put CHERRY_API_KEY right',
}

/** Credentials that were refused the last time that they were shown. */
export interface Refusals {
  note(seen: Pick<CloudRequest, 'api' | 'status'>): void
  problems(): string[]
}

export function createRefusals(): Refusals {
  const refused = new Set<string>()
  return {
    note({ api, status }) {
      if (status === 401) refused.add(api)
      // A request that was taken, whatever came of it; one that was not looked at says nothing of its credential.
      else if (status !== undefined && status < 500 && status !== 429) refused.delete(api)
    },
    problems: () => [...refused].flatMap((api) => CREDENTIALS[api] ?? []),
  }
}
