import type { Cloud } from '../cloud.ts'
import { ApiError, invalidField } from '../errors.ts'
import type { HealthCheck, HealthCheckHttp, LoadBalancerType, Service, ServiceHttp } from '../model.ts'
import * as shape from '../shape.ts'

const { boolean, id, integer, list, nullable, object, oneOf, optional, port, required, text } = shape

const healthCheckHttp = object({
  domain: optional(nullable(text({ max: 128, pattern: /^[^\s%\\]*$/, says: 'may not have spaces, % or \\' }))),
  path: optional(text({ min: 1, max: 256, pattern: /^\/\S*$/, says: 'must begin with / and have no spaces' })),
  response: optional(text({ max: 256 })),
  status_codes: optional(
    list(text({ min: 1, max: 3, pattern: /^([1-5?][0-9?]{2}|[1-5?]?[0-9?]?\*)$/, says: 'is not a status code' }), {
      min: 1,
      max: 20,
    }),
  ),
  tls: optional(boolean),
})

const http = object({
  cookie_name: optional(text({ min: 1, max: 100, pattern: /^[\w!#$%&'*+.^`|~-]+$/, says: 'is not a cookie name' })),
  cookie_lifetime: optional(integer(30, 86_400)),
  certificates: optional(list(id)),
  redirect_http: optional(boolean),
  sticky_sessions: optional(boolean),
  timeout_idle: optional(integer(30, 300)),
})

const healthCheckFields = {
  interval: optional(integer(3, 60)),
  timeout: optional(integer(1, 60)),
  retries: optional(integer(1, 5)),
  http: optional(healthCheckHttp),
}

export const newServiceShape = object({
  protocol: required(oneOf('tcp', 'http', 'https')),
  listen_port: optional(port),
  destination_port: optional(port),
  proxyprotocol: optional(boolean),
  http: optional(http),
  health_check: optional(
    object({ protocol: required(oneOf('tcp', 'http')), port: required(port), ...healthCheckFields }),
  ),
})

export const changedServiceShape = object({
  listen_port: required(port),
  protocol: optional(oneOf('tcp', 'http', 'https')),
  destination_port: optional(port),
  proxyprotocol: optional(boolean),
  http: optional(http),
  health_check: optional(
    object({ protocol: optional(oneOf('tcp', 'http')), port: optional(port), ...healthCheckFields }),
  ),
})

export interface ServiceBody {
  protocol?: Service['protocol']
  listen_port?: number
  destination_port?: number
  proxyprotocol?: boolean
  http?: Partial<ServiceHttp>
  health_check?: Partial<Omit<HealthCheck, 'http'>> & { http?: Partial<HealthCheckHttp> }
}

const httpDefaults: ServiceHttp = {
  cookie_name: 'HCLBSTICKY',
  cookie_lifetime: 300,
  certificates: [],
  redirect_http: false,
  sticky_sessions: false,
  timeout_idle: 60,
}

const checkDefaults = { interval: 15, timeout: 10, retries: 3 }

const checkHttpDefaults: HealthCheckHttp = {
  domain: '',
  path: '/',
  response: '',
  status_codes: ['2??', '3??'],
  tls: false,
}

/** The service that the body asks for, on top of what there was, with defaults filled in. */
export function merge(before: Service | undefined, body: ServiceBody): Service {
  const protocol = body.protocol ?? before?.protocol ?? 'tcp'
  const listen_port = body.listen_port ?? before?.listen_port ?? defaultPort(protocol, 'listen_port')
  const destination_port =
    body.destination_port ?? before?.destination_port ?? defaultPort(protocol, 'destination_port')
  return {
    protocol,
    listen_port,
    destination_port,
    proxyprotocol: body.proxyprotocol ?? before?.proxyprotocol ?? false,
    health_check: mergeCheck(before?.health_check, body.health_check, destination_port),
    ...(protocol === 'tcp' ? {} : { http: { ...httpDefaults, ...before?.http, ...body.http } }),
  }
}

/** What the API refuses about the service as it would be. `others` are the load balancer's remaining services. */
export function assertSound(
  cloud: Cloud,
  type: LoadBalancerType,
  others: Service[],
  service: Service,
  body: ServiceBody,
): void {
  const certificates = body.http?.certificates ?? service.http?.certificates ?? []
  if (service.protocol === 'tcp' && body.http?.sticky_sessions) {
    throw invalidField('http.sticky_sessions', 'not possible with protocol tcp')
  }
  if (service.protocol !== 'https') {
    if (body.http?.redirect_http) throw invalidField('http.redirect_http', 'only possible with protocol https')
    if (body.http?.certificates?.length) throw invalidField('http.certificates', 'only possible with protocol https')
  } else if (certificates.length === 0) {
    throw invalidField('http.certificates', 'protocol https needs a certificate')
  }
  for (const certificate of certificates) {
    if (!cloud.certificates.some((known) => known.id === certificate)) {
      throw invalidField('http.certificates', `certificate ${certificate} does not exist`)
    }
  }
  if (new Set(certificates).size !== certificates.length) throw invalidField('http.certificates', 'named twice')
  if (body.health_check?.http && service.health_check.protocol === 'tcp') {
    throw invalidField('health_check.http', 'only possible with protocol http')
  }
  if (others.some((other) => other.listen_port === service.listen_port)) {
    throw new ApiError('source_port_already_used', `port ${service.listen_port} is already used by another service`)
  }
  if (others.length >= type.max_services) {
    throw new ApiError('resource_limit_exceeded', `${type.name} takes at most ${type.max_services} services`)
  }
  const assigned = new Set([...others.flatMap((other) => other.http?.certificates ?? []), ...certificates])
  if (assigned.size > type.max_assigned_certificates) {
    throw new ApiError('resource_limit_exceeded', `${type.name} takes ${type.max_assigned_certificates} certificates`)
  }
}

function mergeCheck(
  before: HealthCheck | undefined,
  body: ServiceBody['health_check'],
  destinationPort: number,
): HealthCheck {
  const protocol = body?.protocol ?? before?.protocol ?? 'tcp'
  return {
    protocol,
    port: body?.port ?? before?.port ?? destinationPort,
    interval: body?.interval ?? before?.interval ?? checkDefaults.interval,
    timeout: body?.timeout ?? before?.timeout ?? checkDefaults.timeout,
    retries: body?.retries ?? before?.retries ?? checkDefaults.retries,
    ...(protocol === 'http' ? { http: { ...checkHttpDefaults, ...before?.http, ...body?.http } } : {}),
  }
}

function defaultPort(protocol: Service['protocol'], field: 'listen_port' | 'destination_port'): number {
  if (protocol === 'tcp') throw invalidField(field, 'missing required field')
  return protocol === 'https' && field === 'listen_port' ? 443 : 80
}
