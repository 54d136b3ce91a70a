import type { Parser } from './grammar.ts'

/** `redis://`, `rediss://`, or with sentinels `redis+sentinel://host:port,host:port/master` (`rediss+sentinel://` for TLS). */
export const parseRedisUrl: Parser<string> = (text) => {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i.exec(text)
  const [, scheme = '', authority = '', path = '', query, fragment] = match ?? []
  if (match === null) return { fault: `is not a Redis address, ${RIGHT}` }
  if (/cluster/i.test(scheme)) {
    return {
      fault: `asks for Redis Cluster, which job queues can't use: all keys of a queue must be on one node, ${RIGHT}`,
    }
  }
  if (!SCHEMES.has(scheme)) return { fault: `has an unknown scheme, ${RIGHT}` }
  const hosts = authority.slice(authority.lastIndexOf('@') + 1).split(',')
  if (query !== undefined || fragment !== undefined) return { fault: `has a query or fragment, ${RIGHT}` }
  if (hosts.some((host) => !HOST.test(host) || Number(/:([0-9]+)$/.exec(host)?.[1] ?? 0) > 65535)) {
    return { fault: `has a host that is not host, host:port or [IPv6]:port, ${RIGHT}` }
  }
  if (scheme.endsWith('+sentinel')) {
    return /^\/[^/]+$/.test(path) ? { value: text } : { fault: `lacks the master's name, ${RIGHT}` }
  }
  if (hosts.length > 1) {
    return { fault: `names several hosts: Redis Cluster can't be used, and sentinels need their own scheme, ${RIGHT}` }
  }
  if (!URL.canParse(text)) return { fault: `is not a Redis address, ${RIGHT}` }
  return /^\/?[0-9]*$/.test(path) ? { value: text } : { fault: `has a database that is no number, ${RIGHT}` }
}

/** The address with a password put in, for one that is kept apart from it; a user in the address stays. */
export function withPassword(url: string, password: string): string {
  const [, scheme = '', user = '', rest = ''] = /^([^:]+:\/\/)(?:([^/@:]*)(?::[^/@]*)?@)?(.*)$/.exec(url) ?? []
  return `${scheme}${user}:${encodeURIComponent(password)}@${rest}`
}

const SCHEMES = new Set(['redis', 'rediss', 'redis+sentinel', 'rediss+sentinel'])
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]@\s]+)(:[0-9]{1,5})?$/i
const RIGHT = 'write redis://host:6379, rediss://host:6379 or redis+sentinel://host:26379,host:26379/master'
