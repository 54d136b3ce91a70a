import { nearest } from '../../../config/nearest.ts'
import type { HcloudLoadBalancerDefaults } from '../../../config/types.ts'
import {
  type AnnotationKind,
  anyCase,
  bool,
  cookieName,
  domain,
  hostHeader,
  integer,
  ipv4,
  ipv4Network,
  items,
  optionalText,
  port,
  seconds,
  secondsBetween,
  selector,
  statusCodes,
  text,
  urlPath,
} from './parsers.ts'

export const PREFIX = 'load-balancer.hetzner.cloud/'

export interface Annotation<T> {
  kind: AnnotationKind<T>
  /** What holds when neither the annotation nor the setting is there, for the reference. */
  default: string
  /** The setting that stands in for the annotation. */
  setting?: { name: string; key: keyof HcloudLoadBalancerDefaults }
  /** What it does, for the reference. */
  effect: string
  /** What happens on a load balancer that is there when the annotation is removed, where it is not the default that comes back. */
  removal?: string
}

const row = <T>(
  kind: AnnotationKind<T>,
  fallback: string,
  effect: string,
  more: Pick<Annotation<T>, 'setting' | 'removal'> = {},
): Annotation<T> => ({ kind, default: fallback, effect, ...more })

const setting = (name: string, key: keyof HcloudLoadBalancerDefaults) => ({
  setting: { name: `HCLOUD_LOAD_BALANCERS_${name}`, key },
})

/** Every annotation of a Service that Windlass reads for Hetzner. Parsing, validation and the reference page come from this table. */
export const ANNOTATIONS = {
  name: row(
    text,
    '`a` and the first 31 digits of the Service’s uid',
    'Name. An unowned load balancer of that name is adopted.',
    {
      removal: 'name is kept',
    },
  ),
  type: row(optionalText, '`lb11`', 'Type. May be changed up and down. Empty hides the setting.', {
    ...setting('TYPE', 'type'),
    removal: 'setting, else type is kept',
  }),
  location: row(optionalText, 'none', 'Location at creation, not changed later. Empty cancels the setting.', {
    ...setting('LOCATION', 'location'),
    removal: 'no effect',
  }),
  'network-zone': row(
    optionalText,
    'none',
    'Network zone at creation, where there is no location; not changed later. Empty cancels the setting.',
    { ...setting('NETWORK_ZONE', 'networkZone'), removal: 'no effect' },
  ),
  'algorithm-type': row(
    anyCase('round_robin', 'least_connections'),
    '`round_robin`',
    'How requests are shared out.',
    setting('ALGORITHM_TYPE', 'algorithmType'),
  ),
  'node-selector': row(selector, 'all nodes', 'Only nodes that match are targets.'),
  'disable-public-network': row(
    bool,
    'interface is on',
    'Switches the public interface off.',
    setting('DISABLE_PUBLIC_NETWORK', 'disablePublicNetwork'),
  ),
  'use-private-ip': row(
    bool,
    '`false`',
    'Reaches targets by their private address. Needs HCLOUD_NETWORK.',
    setting('USE_PRIVATE_IP', 'usePrivateIp'),
  ),
  'private-ipv4': row(ipv4, 'chosen by the API', 'Address in the configured network. A change detaches and attaches.', {
    removal: 'address is kept',
  }),
  'private-subnet-ip-range': row(
    ipv4Network,
    'chosen by the API',
    'Subnet of the configured network to attach to. Not changed while attached.',
    { ...setting('PRIVATE_SUBNET_IP_RANGE', 'privateSubnetIpRange'), removal: 'subnet is kept' },
  ),
  'disable-private-ingress': row(
    bool,
    '`false`',
    'Leaves private addresses out of the Service’s status.',
    setting('DISABLE_PRIVATE_INGRESS', 'disablePrivateIngress'),
  ),
  'ipv6-disabled': row(
    bool,
    '`false`',
    'Leaves the IPv6 address out of the Service’s status.',
    setting('DISABLE_IPV6', 'disableIpv6'),
  ),
  hostname: row(text, 'addresses', 'Stands alone in the Service’s status, in place of addresses.'),
  'ipv4-rdns': row(domain, 'name given by Hetzner', 'Reverse DNS of the public IPv4 address.'),
  'ipv6-rdns': row(domain, 'name given by Hetzner', 'Reverse DNS of the public IPv6 address.'),
  protocol: row(anyCase('tcp', 'http', 'https'), '`tcp`', 'Protocol of all ports of the Service.'),
  'uses-proxyprotocol': row(
    bool,
    '`false`',
    'Sends the PROXY protocol to targets; the status then says ipMode Proxy.',
    setting('USES_PROXYPROTOCOL', 'usesProxyProtocol'),
  ),
  'http-cookie-name': row(cookieName, '`HCLBSTICKY`', 'Name of the cookie for sticky sessions.'),
  'http-cookie-lifetime': row(seconds, '`300s`', 'Lifetime of that cookie.'),
  'http-timeout-idle': row(secondsBetween(30, 300), '`60s`', 'How long an idle connection is kept.'),
  'certificate-type': row(
    optionalText,
    '`uploaded`',
    '`managed` lets Hetzner issue a certificate; everything else means uploaded ones.',
  ),
  'http-certificates': row(items, 'none', 'Ids or names of the certificates of https listeners.'),
  'http-managed-certificate-name': row(
    optionalText,
    '`ccm-managed-certificate-` and the Service’s uid',
    'Name of the managed certificate. Another name makes another certificate.',
  ),
  'http-managed-certificate-domains': row(
    items,
    'none',
    'Domains of the managed certificate, required for it. They are fixed once it is made.',
  ),
  'http-managed-certificate-acme-staging': row(optionalText, '`false`', 'For tests by Hetzner.'),
  'http-redirect-http': row(bool, '`false`', 'Redirects port 80 to https.'),
  'http-sticky-sessions': row(bool, '`false`', 'Sends a client to the same target again.'),
  'health-check-protocol': row(
    anyCase('tcp', 'http', 'https'),
    '`tcp`; with another health check setting the listener’s protocol',
    'Protocol of the health check; https is http with TLS.',
  ),
  'health-check-port': row(port, 'node port', 'Port of the health check, for all listeners.'),
  'health-check-interval': row(
    seconds,
    '`15s`',
    'Time between health checks.',
    setting('HEALTH_CHECK_INTERVAL', 'healthCheckIntervalMs'),
  ),
  'health-check-timeout': row(
    seconds,
    '`10s`',
    'When a health check counts as failed.',
    setting('HEALTH_CHECK_TIMEOUT', 'healthCheckTimeoutMs'),
  ),
  'health-check-retries': row(
    integer,
    '`3`',
    'Failures in a row until a target is unhealthy.',
    setting('HEALTH_CHECK_RETRIES', 'healthCheckRetries'),
  ),
  'health-check-http-domain': row(hostHeader, 'none', 'Host header. Only together with another health check setting.'),
  'health-check-http-path': row(urlPath, '`/`', 'Path. Only together with another health check setting.'),
  'health-check-http-validate-certificate': row(
    bool,
    '`false`',
    'Speaks TLS to the target. Only together with another health check setting.',
  ),
  'http-status-codes': row(
    statusCodes,
    '`2??,3??`',
    'Status codes that count as healthy. Only together with another health check setting.',
  ),
} as const satisfies Record<string, Annotation<never> | Annotation<unknown>>

export type AnnotationName = keyof typeof ANNOTATIONS
type ValueOf<A> = A extends Annotation<infer T> ? T : never

/** The values of the annotations that a Service has; settings are not mixed in. */
export type AnnotationValues = { -readonly [N in AnnotationName]?: ValueOf<(typeof ANNOTATIONS)[N]> }

export interface ParsedAnnotations {
  values: AnnotationValues
  /** The message says annotation, value, what is wrong, and what would be right. */
  faults: { name: AnnotationName; message: string }[]
  /** What was taken otherwise than written, or not at all. */
  remarks: string[]
  /** Of these, names that look like one of ours: a slip may be why something is missing. */
  slips: string[]
}

/** Written by old versions of the replaced controller; no use, and no mistake. */
const IGNORED = new Set(['id', 'ipv4', 'ipv6'])

/** All annotations at once: every fault is found, not only the first. */
export function parseAnnotations(annotations: Readonly<Record<string, string>>): ParsedAnnotations {
  const values: Record<string, unknown> = {}
  const faults: ParsedAnnotations['faults'] = []
  const remarks: string[] = []
  const slips: string[] = []
  for (const [key, raw] of Object.entries(annotations)) {
    if (!key.startsWith(PREFIX)) continue
    const name = key.slice(PREFIX.length)
    if (!isAnnotationName(name)) {
      if (IGNORED.has(name)) continue
      const hint = nearest(name, Object.keys(ANNOTATIONS))
      remarks.push(
        `annotation ${key} is unknown and has no effect${hint === undefined ? '' : `, the nearest is ${PREFIX}${hint}`}`,
      )
      if (hint !== undefined) slips.push(`annotation ${key} is unknown, the nearest is ${PREFIX}${hint}`)
      continue
    }
    const annotation: Annotation<unknown> = ANNOTATIONS[name]
    const parsed = annotation.kind.parse(raw)
    if ('fault' in parsed) faults.push({ name, message: `annotation ${key}: "${raw}" ${parsed.fault}` })
    else {
      values[name] = parsed.value
      if ((parsed.value as { truncated?: boolean }).truncated === true)
        remarks.push(
          `annotation ${key}: "${raw}" is taken as ${(parsed.value as { seconds: number }).seconds}s, whole seconds are all that the API knows`,
        )
    }
  }
  return { values: values as AnnotationValues, faults, remarks, slips }
}

/** Where the value in use of an annotation was written, for people: the annotation, else the setting that stands in for it. */
export function writtenIn(name: AnnotationName, annotations: Readonly<Record<string, string>>): string {
  const { setting: standIn }: Annotation<unknown> = ANNOTATIONS[name]
  const key = `${PREFIX}${name}`
  return standIn === undefined || annotations[key] !== undefined ? `annotation ${key}` : standIn.name
}

function isAnnotationName(name: string): name is AnnotationName {
  return Object.hasOwn(ANNOTATIONS, name)
}
