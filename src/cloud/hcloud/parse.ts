import type {
  Action,
  Certificate,
  CloudServerId,
  HealthCheck,
  Listener,
  LoadBalancer,
  LoadBalancerType,
  Location,
  Network,
  PrivateNet,
  Server,
  Target,
} from './model.ts'

/**
 * Reads answers of the API. What is optional may be absent, null or of another kind. An id must be there, and so must what the API always
 * has and whose absence would read as "none": addresses, targets and labels that are not said must not be taken away.
 */
export type Json = Record<string, unknown>

export class MalformedAnswer extends Error {}

export const DEFAULT_HTTP = { cookieName: 'HCLBSTICKY', cookieLifetime: 300, timeoutIdle: 60 } as const
export const DEFAULT_HEALTH = { interval: 15, timeout: 10, retries: 3 } as const
export const DEFAULT_HEALTH_HTTP = { domain: '', path: '/', response: '', statusCodes: ['2??', '3??'], tls: false }

export function parseServer(json: unknown): Server {
  const server = record(json)
  const publicNet = objectIn(server, 'public_net', 'server')
  return {
    id: idOf(server, 'server') as CloudServerId,
    name: text(server.name) ?? '',
    status: text(server.status) ?? 'unknown',
    ...present('serverType', text(record(server.server_type).name)),
    ...present('location', text(record(server.location).name) ?? text(record(record(server.datacenter).location).name)),
    ...present('ipv4', address(record(publicNet.ipv4).ip)),
    ...present('ipv6', address(record(publicNet.ipv6).ip)),
    privateNets: privateNets(listIn(server, 'private_net', 'server')),
  }
}

export function parseLoadBalancer(json: unknown): LoadBalancer {
  const lb = record(json)
  const publicNet = objectIn(lb, 'public_net', 'load balancer')
  const [ipv4, ipv6, location] = [record(publicNet.ipv4), record(publicNet.ipv6), record(lb.location)]
  return {
    id: idOf(lb, 'load balancer'),
    name: text(lb.name) ?? '',
    labels: labels(objectIn(lb, 'labels', 'load balancer')),
    publicNet: {
      enabled: publicNet.enabled !== false,
      ...present('ipv4', address(ipv4.ip)),
      ...present('ipv4DnsPtr', text(ipv4.dns_ptr)),
      ...present('ipv6', address(ipv6.ip)),
      ...present('ipv6DnsPtr', text(ipv6.dns_ptr)),
    },
    privateNets: privateNets(listIn(lb, 'private_net', 'load balancer')),
    type: parseLoadBalancerType(lb.load_balancer_type),
    ...present('location', text(location.name)),
    ...present('networkZone', text(location.network_zone)),
    algorithm: text(record(lb.algorithm).type) ?? 'round_robin',
    listeners: listIn(lb, 'services', 'load balancer').map(listener),
    targets: listIn(lb, 'targets', 'load balancer').map(target),
    deleteProtected: record(lb.protection).delete === true,
  }
}

export function parseLocation(json: unknown): Location {
  const location = record(json)
  return {
    id: number(location.id) ?? 0,
    name: text(location.name) ?? '',
    networkZone: text(location.network_zone) ?? '',
  }
}

export function parseLoadBalancerType(json: unknown): LoadBalancerType {
  const type = record(json)
  return {
    id: number(type.id) ?? 0,
    name: text(type.name) ?? '',
    maxTargets: number(type.max_targets) ?? Number.MAX_SAFE_INTEGER,
    maxServices: number(type.max_services) ?? Number.MAX_SAFE_INTEGER,
    ...present('unavailableAfter', text(record(type.deprecation).unavailable_after)),
  }
}

export function parseNetwork(json: unknown): Network {
  const network = record(json)
  return {
    id: idOf(network, 'network'),
    name: text(network.name) ?? '',
    ...present('ipRange', text(network.ip_range)),
    subnets: list(network.subnets).flatMap((subnet) => text(record(subnet).ip_range) ?? []),
    gateways: list(network.subnets).flatMap((subnet) => text(record(subnet).gateway) ?? []),
    routes: list(network.routes).flatMap((route) => {
      const [destination, gateway] = [text(record(route).destination), text(record(route).gateway)]
      return destination === undefined || gateway === undefined ? [] : [{ destination, gateway }]
    }),
  }
}

export function parseCertificate(json: unknown): Certificate {
  const certificate = record(json)
  const status = record(certificate.status)
  return {
    id: idOf(certificate, 'certificate'),
    name: text(certificate.name) ?? '',
    type: text(certificate.type) ?? 'uploaded',
    labels: labels(certificate.labels),
    domainNames: list(certificate.domain_names).flatMap((name) => text(name) ?? []),
    ...present('issuance', text(status.issuance)),
    ...present('issuanceError', text(record(status.error).message)),
    usedBy: list(certificate.used_by).flatMap((user) => {
      const id = number(record(user).id)
      return id === undefined ? [] : [{ id, type: text(record(user).type) ?? '' }]
    }),
  }
}

export function parseAction(json: unknown): Action {
  const action = record(json)
  const error = record(action.error)
  return {
    id: idOf(action, 'action'),
    status: text(action.status) ?? 'running',
    command: text(action.command) ?? 'action',
    ...(action.error
      ? { error: { code: text(error.code) ?? 'action_failed', message: text(error.message) ?? 'Action failed' } }
      : {}),
  }
}

/** The list under a name. A list that is not there is a broken answer, never an empty one. */
export function listOf<T>(answer: unknown, name: string, parse: (json: unknown) => T): T[] {
  const items = record(answer)[name]
  if (!Array.isArray(items)) throw new MalformedAnswer(`the answer has no list "${name}"`)
  return items.map(parse)
}

export function objectOf<T>(answer: unknown, name: string, parse: (json: unknown) => T): T {
  const item = record(answer)[name]
  if (typeof item !== 'object' || item === null) throw new MalformedAnswer(`the answer has no object "${name}"`)
  return parse(item)
}

export function pagination(answer: unknown): { nextPage?: number; totalEntries?: number } {
  const page = record(record(record(answer).meta).pagination)
  return {
    ...present('nextPage', number(page.next_page) || undefined),
    ...present('totalEntries', number(page.total_entries)),
  }
}

export function record(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function listener(json: unknown): Listener {
  const service = record(json)
  const http = record(service.http)
  const protocol = text(service.protocol)
  const timeoutIdle = number(http.timeout_idle)
  return {
    protocol: protocol === 'http' || protocol === 'https' ? protocol : 'tcp',
    listenPort: number(service.listen_port) ?? 0,
    destinationPort: number(service.destination_port) ?? 0,
    proxyProtocol: service.proxyprotocol === true,
    ...(protocol === 'http' || protocol === 'https'
      ? {
          http: {
            cookieName: text(http.cookie_name) ?? DEFAULT_HTTP.cookieName,
            cookieLifetime: number(http.cookie_lifetime) ?? DEFAULT_HTTP.cookieLifetime,
            ...present('timeoutIdle', timeoutIdle),
            redirectHttp: http.redirect_http === true,
            stickySessions: http.sticky_sessions === true,
            certificates: list(http.certificates)
              .flatMap((id) => number(id) ?? number(record(id).id) ?? [])
              .sort((a, b) => a - b),
          },
        }
      : {}),
    healthCheck: healthCheck(service.health_check),
  }
}

function healthCheck(json: unknown): HealthCheck {
  const check = record(json)
  const http = record(check.http)
  const codes = list(http.status_codes).flatMap((code) => text(code) ?? [])
  const isHttp = check.protocol === 'http' || check.protocol === 'https'
  return {
    protocol: isHttp ? 'http' : 'tcp',
    port: number(check.port) ?? 0,
    interval: number(check.interval) ?? DEFAULT_HEALTH.interval,
    timeout: number(check.timeout) ?? DEFAULT_HEALTH.timeout,
    retries: number(check.retries) ?? DEFAULT_HEALTH.retries,
    ...(isHttp
      ? {
          http: {
            domain: text(http.domain) ?? DEFAULT_HEALTH_HTTP.domain,
            path: text(http.path) ?? DEFAULT_HEALTH_HTTP.path,
            response: text(http.response) ?? DEFAULT_HEALTH_HTTP.response,
            statusCodes: codes.length > 0 ? codes : DEFAULT_HEALTH_HTTP.statusCodes,
            tls: http.tls === true,
          },
        }
      : {}),
  }
}

function target(json: unknown): Target {
  const one = record(json)
  const server = number(record(one.server).id)
  const ip = text(record(one.ip).ip)
  if (one.type === 'server' && server !== undefined)
    return { type: 'server', server: server as CloudServerId, usePrivateIp: one.use_private_ip === true }
  if (one.type === 'ip' && ip !== undefined) return { type: 'ip', ip }
  return { type: 'other' }
}

function privateNets(value: readonly unknown[]): PrivateNet[] {
  return value.flatMap((json) => {
    const [network, ip] = [number(record(json).network), text(record(json).ip)]
    const aliasIps = list(record(json).alias_ips).flatMap((one) => text(one) ?? [])
    return network === undefined ? [] : [{ network, ip: ip ?? '', ...(aliasIps.length > 0 ? { aliasIps } : {}) }]
  })
}

function labels(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record(value)).flatMap(([key, label]) => (typeof label === 'string' ? [[key, label]] : [])),
  )
}

/** An address that is none: the API writes null, nothing, or the unspecified address. */
function address(value: unknown): string | undefined {
  const ip = text(value)
  return ip === undefined || ip === '' || ip === '0.0.0.0' || ip === '::' ? undefined : ip
}

function idOf(json: Json, what: string): number {
  const id = number(json.id)
  if (id === undefined) throw new MalformedAnswer(`the answer has a ${what} without id`)
  return id
}

function objectIn(json: Json, key: string, what: string): Json {
  const value = json[key]
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new MalformedAnswer(`the answer has a ${what} without ${key}`)
  return value as Json
}

function listIn(json: Json, key: string, what: string): unknown[] {
  const value = json[key]
  if (!Array.isArray(value)) throw new MalformedAnswer(`the answer has a ${what} without ${key}`)
  return value
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
}
