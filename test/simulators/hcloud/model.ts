/** The account's resources, in the API's own field names where it has them. */
export type Labels = Record<string, string>

export interface Location {
  id: number
  name: string
  description: string
  country: string
  city: string
  latitude: number
  longitude: number
  network_zone: string
}

export interface LoadBalancerType {
  id: number
  name: string
  description: string
  max_connections: number
  max_services: number
  max_targets: number
  max_assigned_certificates: number
  deprecated: string | null
  deprecation: { announced: string; unavailable_after: string } | null
  prices: unknown[]
}

export interface PrivateNet {
  network: number
  ip: string
  alias_ips: string[]
  mac_address: string
}

export interface Server {
  id: number
  name: string
  status: string
  created: string
  labels: Labels
  location: Location
  server_type: { id: number; name: string } & Record<string, unknown>
  /** null: the server has no such address */
  ipv4: string | null
  ipv6: string | null
  private_net: PrivateNet[]
  protection: { delete: boolean; rebuild: boolean }
}

export interface Subnet {
  type: 'cloud' | 'server' | 'vswitch'
  ip_range: string
  network_zone: string
  gateway: string
  vswitch_id: number | null
}

export interface Network {
  id: number
  name: string
  ip_range: string
  subnets: Subnet[]
  routes: { destination: string; gateway: string }[]
  labels: Labels
  protection: { delete: boolean }
  created: string
}

export interface HealthCheckHttp {
  domain: string | null
  path: string
  response: string
  status_codes: string[]
  tls: boolean
}

export interface HealthCheck {
  protocol: 'tcp' | 'http'
  port: number
  interval: number
  timeout: number
  retries: number
  http?: HealthCheckHttp
}

export interface ServiceHttp {
  cookie_name: string
  cookie_lifetime: number
  certificates: number[]
  redirect_http: boolean
  sticky_sessions: boolean
  timeout_idle: number
}

export interface Service {
  protocol: 'tcp' | 'http' | 'https'
  listen_port: number
  destination_port: number
  proxyprotocol: boolean
  health_check: HealthCheck
  http?: ServiceHttp
}

export type Target =
  | { type: 'server'; server: { id: number }; use_private_ip: boolean }
  | { type: 'ip'; ip: { ip: string } }
  | { type: 'label_selector'; label_selector: { selector: string }; use_private_ip: boolean }

export interface Attachment {
  network: number
  ip: string
  /** the address was asked for, not chosen by the cloud */
  requested: boolean
  subnet: string
}

export interface LoadBalancer {
  id: number
  name: string
  labels: Labels
  load_balancer_type: LoadBalancerType
  location: Location
  /** the network zone that was asked for in place of a location */
  by_zone?: string
  algorithm: { type: string }
  protection: { delete: boolean }
  public_net: {
    enabled: boolean
    ipv4: { ip: string; dns_ptr: string | null }
    ipv6: { ip: string; dns_ptr: string | null }
  }
  private_net: Attachment[]
  services: Service[]
  targets: Target[]
  created: string
}

export interface Certificate {
  id: number
  name: string
  type: 'uploaded' | 'managed'
  labels: Labels
  domain_names: string[]
  created: string
  status: { issuance: string; renewal: string; error: { code: string; message: string } | null } | null
}

export interface RobotServer {
  server_number: number
  server_name: string
  server_ip: string | null
  server_ipv6_net: string | null
  product: string
  dc: string
  status: string
  operating_status: string
  cancelled: boolean
  /** false: the machine has no reset function */
  reset: boolean
}

export interface Options {
  /** how long an action runs, ms */
  action_ms: number
  /** how long a managed certificate takes to be issued, ms; as an action if left out */
  certificate_ms?: number
  /** true: an action's effect is seen at its start, not at its end */
  apply_at_start: boolean
  /** for so long a new load balancer or certificate is missing from lists, ms */
  stale_ms: number
  /** requests per hour and project, given back one by one over the hour */
  rate_limit: number
  /** so many of these are left at first; all if left out */
  rate_remaining?: number
  /** more load balancers than that are refused */
  max_load_balancers: number
  /** a load balancer made with a network answers conflict while that network has a running action */
  create_network_conflict: boolean
  /** Robot: GET /server per interval */
  robot_max_request: number
  robot_interval_s: number
  /** Robot: refused logins until the address is shut out; 0 never */
  robot_lockout_after: number
  robot_lockout_ms: number
}

export const defaultOptions: Options = {
  action_ms: 50,
  apply_at_start: false,
  stale_ms: 0,
  rate_limit: 3600,
  max_load_balancers: 1000,
  create_network_conflict: true,
  robot_max_request: 200,
  robot_interval_s: 3600,
  robot_lockout_after: 0,
  robot_lockout_ms: 600_000,
}
