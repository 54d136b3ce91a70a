/**
 * The resources of the Hetzner Cloud API, cut down to the fields that Windlass reads, in its own spelling. Everything optional at the
 * API may be absent here: an answer without `datacenter`, or with a status that nobody knows yet, must break nothing.
 */
declare const brand: unique symbol

/** Id of a server in Hetzner Cloud. A number of its own kind: Robot counts its servers from the same range. */
export type CloudServerId = number & { readonly [brand]: 'cloud-server' }

export interface PrivateNet {
  network: number
  ip: string
  /** Of servers: further addresses, which are in use but never a node's. */
  aliasIps?: string[]
}

export interface Server {
  id: CloudServerId
  name: string
  /** `running`, `off`, `starting`, … */
  status: string
  serverType?: string
  location?: string
  /** Public IPv4. */
  ipv4?: string
  /** Public IPv6 network, e.g. `2001:db8::/64`. */
  ipv6?: string
  privateNets: PrivateNet[]
}

export type Protocol = 'tcp' | 'http' | 'https'
export type Algorithm = 'round_robin' | 'least_connections'

export interface HealthCheck {
  protocol: 'tcp' | 'http'
  port: number
  /** Seconds. */
  interval: number
  /** Seconds. */
  timeout: number
  retries: number
  http?: { domain: string; path: string; response: string; statusCodes: string[]; tls: boolean }
}

/** What the API calls a service of a load balancer. */
export interface Listener {
  protocol: Protocol
  listenPort: number
  destinationPort: number
  proxyProtocol: boolean
  http?: {
    cookieName: string
    /** Seconds. */
    cookieLifetime: number
    /** Seconds; absent where the API does not know it. */
    timeoutIdle?: number
    redirectHttp: boolean
    stickySessions: boolean
    /** Ids, sorted. */
    certificates: number[]
  }
  healthCheck: HealthCheck
}

export type Target =
  | { type: 'server'; server: CloudServerId; usePrivateIp: boolean }
  | { type: 'ip'; ip: string }
  /** Label selectors and whatever else the API may know: counted, never touched. */
  | { type: 'other' }

export interface LoadBalancer {
  id: number
  name: string
  labels: Record<string, string>
  publicNet: { enabled: boolean; ipv4?: string; ipv4DnsPtr?: string; ipv6?: string; ipv6DnsPtr?: string }
  privateNets: PrivateNet[]
  type: LoadBalancerType
  location?: string
  networkZone?: string
  algorithm: string
  listeners: Listener[]
  targets: Target[]
  deleteProtected: boolean
}

export interface Location {
  id: number
  name: string
  networkZone: string
}

export interface LoadBalancerType {
  id: number
  name: string
  maxTargets: number
  maxServices: number
  /** RFC 3339 time after which it can't be ordered any more, if it is deprecated. */
  unavailableAfter?: string
}

export interface Network {
  id: number
  name: string
  ipRange?: string
  /** CIDRs. */
  subnets: string[]
  /** Addresses of the cloud itself, one in each subnet. */
  gateways: string[]
  routes: { destination: string; gateway: string }[]
}

export interface Certificate {
  id: number
  name: string
  /** `uploaded` or `managed`. */
  type: string
  labels: Record<string, string>
  domainNames: string[]
  /** Of a managed one: `pending`, `completed`, `failed`. */
  issuance?: string
  issuanceError?: string
  usedBy: { id: number; type: string }[]
}

export interface Action {
  id: number
  /** `running`, `success`, `error`. */
  status: string
  command: string
  error?: { code: string; message: string }
}
