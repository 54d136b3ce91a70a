/** Which requests a fault hits; absent fields match all. */
export interface FaultMatch {
  method?: string
  /** As in RBAC: get, list, watch, create, update, patch, delete. */
  verb?: string
  /** Plural, with its subresource. */
  resource?: string
  /** Regular expression for path and query. */
  url?: string
}

export type FaultEffect =
  /** Answers so and does nothing. */
  | { kind: 'status'; status: number; reason?: string; message?: string; retryAfterSeconds?: number }
  /** Answers with this text, whatever it is. */
  | { kind: 'body'; status: number; contentType: string; body: string }
  /** Cuts the connection, before or after the request took effect. */
  | { kind: 'drop'; afterEffect?: boolean }
  /** Never answers. */
  | { kind: 'hang' }
  /** Takes effect after so long. */
  | { kind: 'delay'; ms: number }
  /** Refuses the version of a watch or list with 410, as an answer. */
  | { kind: 'gone' }

export interface Fault {
  match?: FaultMatch
  effect: FaultEffect
  /** How many requests it hits; all if absent. */
  times?: number
}

export interface Hit {
  method: string
  verb: string
  resource: string
  url: string
}

/** Faults wait for the requests that they match, first come first served. */
export class Faults {
  #waiting: { fault: Fault; left: number }[] = []

  add(fault: Fault): void {
    this.#waiting.push({ fault, left: fault.times ?? Number.POSITIVE_INFINITY })
  }

  clear(): void {
    this.#waiting = []
  }

  take(hit: Hit): FaultEffect | undefined {
    const found = this.#waiting.find(({ fault }) => matches(fault.match ?? {}, hit))
    if (!found) return undefined
    found.left--
    if (found.left === 0) this.#waiting = this.#waiting.filter((one) => one !== found)
    return found.fault.effect
  }
}

function matches({ method, verb, resource, url }: FaultMatch, hit: Hit): boolean {
  return (
    (method === undefined || method === hit.method) &&
    (verb === undefined || verb === hit.verb) &&
    (resource === undefined || resource === hit.resource) &&
    (url === undefined || new RegExp(url).test(hit.url))
  )
}
