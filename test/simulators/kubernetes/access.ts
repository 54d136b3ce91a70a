import { Refusal } from './refusal.ts'

/** What a token may do, in the terms of RBAC. `*` stands for all. */
export interface Rule {
  verbs: string[]
  /** Plurals, a subresource as `services/status`. */
  resources: string[]
  /** All groups if absent. */
  groups?: string[]
  /** All namespaces, and the cluster's own objects, if absent. */
  namespaces?: string[]
}

export interface Account {
  user: string
  rules: Rule[]
}

export interface Attempt {
  verb: string
  /** Plural, with its subresource. */
  resource: string
  group: string
  namespace?: string
  name?: string
}

export const EVERYTHING: Rule[] = [{ verbs: ['*'], resources: ['*'] }]

/** Bearer tokens and their rights. Without an entry a token is refused with 401. */
export class Access {
  readonly #accounts = new Map<string, Account>()

  grant(token: string, account: Account): void {
    this.#accounts.set(token, account)
  }

  revoke(token: string): void {
    this.#accounts.delete(token)
  }

  authenticate(authorization: string | undefined): Account {
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1]
    const account = token === undefined ? undefined : this.#accounts.get(token)
    if (!account) throw new Refusal(401, 'Unauthorized', 'Unauthorized')
    return account
  }

  authorize({ user, rules }: Account, { verb, resource, group, namespace, name }: Attempt): void {
    const allows = (list: string[] | undefined, value: string | undefined) =>
      list === undefined || list.includes('*') || (value !== undefined && list.includes(value))
    if (
      rules.some(
        (rule) =>
          allows(rule.verbs, verb) &&
          allows(rule.resources, resource) &&
          allows(rule.groups, group) &&
          allows(rule.namespaces, namespace),
      )
    )
      return
    const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`
    throw new Refusal(
      403,
      'Forbidden',
      `${resource}${name ? ` "${name}"` : ''} is forbidden: User "${user}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
      { ...(name ? { name } : {}), kind: resource },
    )
  }
}
