import { parseBool } from '../../../config/grammar.ts'
import { matches } from '../../../config/selector.ts'
import type { HcloudLoadBalancerDefaults } from '../../../config/types.ts'
import type { NodeProjection, ServiceProjection } from '../../../events/projection.ts'
import type { Note } from '../../provider.ts'
import type { Algorithm, Listener, Protocol } from '../model.ts'
import { DEFAULT_HEALTH, DEFAULT_HEALTH_HTTP, DEFAULT_HTTP } from '../parse.ts'
import { type AnnotationName, type AnnotationValues, PREFIX, parseAnnotations, writtenIn } from './annotations.ts'
import { managedCertificateName } from './names.ts'
import { type WantedTarget, wantedTargets } from './targets.ts'

/** What a Service wants of its load balancer, in full. What is undefined is left as it is, or to the API at creation. */
export interface Desired {
  /** From the annotation; without it a new load balancer gets its default name, and one that is there keeps its own. */
  name?: string
  type?: string
  /** Neither annotation nor setting names a type, and a new load balancer gets the smallest. */
  placement: { location?: string; networkZone?: string }
  algorithm?: Algorithm
  publicInterface?: boolean
  rdns: { ipv4?: string; ipv6?: string }
  attachment: { ip?: string; ipRange?: string }
  usePrivateIp: boolean
  /** Certificates are filled in when they are known: all listeners have the same. */
  listeners: Listener[]
  certificates: WantedCertificates
  targets: WantedTarget[]
  ingress: { hostname?: string; ipv6: boolean; privateAddresses: boolean; ipMode: 'VIP' | 'Proxy' }
}

export type WantedCertificates =
  | { kind: 'none' }
  /** Ids or names, as written. */
  | { kind: 'uploaded'; references: string[] }
  | { kind: 'managed'; name: string; domains: string[]; staging: boolean }

export interface DesireOptions {
  defaults: HcloudLoadBalancerDefaults
  hasNetwork: boolean
  robotEnabled: boolean
}

export const DEFAULT_TYPE = 'lb11'

export interface Wish {
  desired: Desired
  /** Everything that is wrong with the Service; with any of these nothing is made, and of a load balancer that is there only targets change. */
  faults: string[]
  /** Wrong only where a load balancer has to be made, or attached to the network: one that is there keeps its name and its place. */
  faultsIfMade: string[]
  faultsIfAttached: string[]
  /** Which targets are wanted is known in spite of all faults. */
  targetsKnown: boolean
  /** Annotations that look misspelt, for when nothing comes of the Service and the notes with it. */
  slips: string[]
  notes: Note[]
}

/** Pure. */
export function desire(service: ServiceProjection, nodes: readonly NodeProjection[], options: DesireOptions): Wish {
  const { defaults } = options
  const { values, faults: annotationFaults, remarks, slips } = parseAnnotations(service.annotations)
  const unused = unusedAnnotations(values, options)
  const used = annotationFaults.filter(({ name }) => !unused.has(name))
  const faultsOf = (which: (name: AnnotationName) => boolean) =>
    used.flatMap(({ name, message }) => (which(name) ? [message] : []))
  const faults = faultsOf((name) => !IF_MADE.has(name) && !IF_ATTACHED.has(name))
  const ignored = annotationFaults.flatMap(({ name, message }) =>
    unused.has(name) ? [`${message}; it is not used`] : [],
  )
  const notes: Note[] = [...remarks, ...ignored].map(annotationIgnored)
  const usePrivateIp = values['use-private-ip'] ?? defaults.usePrivateIp
  const lacksNetwork = usePrivateIp && !options.hasNetwork
  if (lacksNetwork)
    faults.push(
      `use-private-ip needs a network: set HCLOUD_NETWORK, or ${writtenIn('use-private-ip', service.annotations)} to "false"`,
    )
  const protocol: Protocol = values.protocol ?? 'tcp'
  const usesProxyProtocol = values['uses-proxyprotocol'] ?? defaults.usesProxyProtocol ?? false
  const certificates = wantedCertificates(service, values, protocol, faults)
  if (protocol !== 'https' && values['http-redirect-http'])
    faults.push(`annotation ${PREFIX}http-redirect-http needs ${PREFIX}protocol "https", which is "${protocol}"`)
  if (protocol === 'tcp' && values['http-sticky-sessions'])
    faults.push(`annotation ${PREFIX}http-sticky-sessions needs ${PREFIX}protocol "http" or "https"`)
  const selected = nodes.filter((node) => matches(values['node-selector'] ?? [], node.labels))
  const targets = wantedTargets(selected, { usePrivateIp, robotEnabled: options.robotEnabled })
  const { listeners, notes: portNotes, faults: portFaults } = wantedListeners(service, values, options)
  faults.push(...portFaults)
  notes.push(...portNotes, ...targets.notes, ...fieldNotes(service))
  const type = values.type ?? defaults.type
  return {
    desired: {
      ...present('name', values.name),
      ...present('type', type || undefined),
      placement: placement(values, defaults),
      ...present('algorithm', values['algorithm-type'] ?? defaults.algorithmType),
      ...present('publicInterface', negated(values['disable-public-network'] ?? defaults.disablePublicNetwork)),
      rdns: { ...present('ipv4', values['ipv4-rdns']), ...present('ipv6', values['ipv6-rdns']) },
      attachment: {
        ...present('ip', values['private-ipv4'] || undefined),
        ...present('ipRange', values['private-subnet-ip-range'] ?? defaults.privateSubnetIpRange),
      },
      usePrivateIp,
      listeners,
      certificates,
      targets: targets.targets,
      ingress: {
        ...present('hostname', values.hostname),
        ipv6: !(values['ipv6-disabled'] ?? defaults.disableIpv6),
        privateAddresses: !(values['disable-private-ingress'] ?? defaults.disablePrivateIngress),
        ipMode: usesProxyProtocol ? 'Proxy' : 'VIP',
      },
    },
    faults,
    faultsIfMade: faultsOf((name) => IF_MADE.has(name)),
    faultsIfAttached: faultsOf((name) => IF_ATTACHED.has(name)),
    targetsKnown: !lacksNetwork && faultsOf((name) => OF_TARGETS.has(name)).length === 0,
    slips,
    notes,
  }
}

const IF_MADE: ReadonlySet<AnnotationName> = new Set(['name'])
const IF_ATTACHED: ReadonlySet<AnnotationName> = new Set(['private-subnet-ip-range'])
const OF_TARGETS: ReadonlySet<AnnotationName> = new Set(['node-selector', 'use-private-ip'])

export const annotationIgnored = (message: string): Note => warning('AnnotationIgnored', message)

/** Annotations that nothing looks at beside the others: a fault in one of them has no consequence. */
function unusedAnnotations(values: AnnotationValues, options: DesireOptions): Set<AnnotationName> {
  const unused = new Set<AnnotationName>()
  if (!options.hasNetwork) unused.add('private-ipv4').add('private-subnet-ip-range')
  if (values.hostname !== undefined) unused.add('ipv6-disabled').add('disable-private-ingress')
  const managed = values['certificate-type'] === 'managed'
  unused.add(managed ? 'http-certificates' : 'http-managed-certificate-domains')
  if (healthCheckProtocol(values.protocol ?? 'tcp', values, options.defaults) === 'tcp')
    for (const name of HEALTH_CHECK_HTTP) unused.add(name)
  return unused
}

const HEALTH_CHECK_HTTP: readonly AnnotationName[] = [
  'health-check-http-domain',
  'health-check-http-path',
  'health-check-http-validate-certificate',
  'http-status-codes',
]

/** A location goes before a zone, wherever they come from. */
function placement(values: AnnotationValues, defaults: HcloudLoadBalancerDefaults): Desired['placement'] {
  const location = values.location ?? defaults.location
  const networkZone = values['network-zone'] ?? defaults.networkZone
  if (location) return { location }
  return networkZone ? { networkZone } : {}
}

function wantedCertificates(
  service: ServiceProjection,
  values: AnnotationValues,
  protocol: Protocol,
  faults: string[],
): WantedCertificates {
  const references = values['http-certificates'] ?? []
  const managed = values['certificate-type'] === 'managed'
  const asked = managed || references.length > 0
  if (asked && protocol !== 'https') {
    faults.push(
      `annotation ${PREFIX}${managed ? 'certificate-type' : 'http-certificates'} needs ${PREFIX}protocol "https", which is "${protocol}"`,
    )
  }
  if (managed) {
    const domains = values['http-managed-certificate-domains'] ?? []
    if (domains.length === 0)
      faults.push(
        `a managed certificate has no domains: name them in annotation ${PREFIX}http-managed-certificate-domains`,
      )
    return {
      kind: 'managed',
      name: values['http-managed-certificate-name'] || managedCertificateName(service.uid),
      domains,
      staging: isTrue(values['http-managed-certificate-acme-staging'] ?? ''),
    }
  }
  if (
    protocol === 'https' &&
    references.length === 0 &&
    service.annotations[`${PREFIX}http-certificates`] === undefined
  )
    faults.push(
      `${PREFIX}protocol "https" needs a certificate: name one in annotation ${PREFIX}http-certificates, or set ${PREFIX}certificate-type to "managed"`,
    )
  return references.length > 0 ? { kind: 'uploaded', references } : { kind: 'none' }
}

function wantedListeners(
  service: ServiceProjection,
  values: AnnotationValues,
  { defaults }: DesireOptions,
): { listeners: Listener[]; notes: Note[]; faults: string[] } {
  const listeners: Listener[] = []
  const notes: Note[] = []
  const faults: string[] = []
  for (const port of service.ports) {
    if (port.protocol !== undefined && port.protocol !== 'TCP') {
      notes.push(
        warning(
          'UnsupportedProtocolConfigured',
          `port ${port.port} has protocol ${port.protocol}: Hetzner's load balancers know TCP only, so it gets no listener`,
        ),
      )
    } else if (!port.nodePort) {
      faults.push(
        `port ${port.port} has no node port, which a load balancer needs: set spec.allocateLoadBalancerNodePorts to true, or name a nodePort`,
      )
    } else {
      listeners.push(wantedListener(port.port, port.nodePort, values, defaults))
    }
  }
  return { listeners, notes, faults }
}

function wantedListener(
  listenPort: number,
  nodePort: number,
  values: AnnotationValues,
  defaults: HcloudLoadBalancerDefaults,
): Listener {
  const protocol: Protocol = values.protocol ?? 'tcp'
  return {
    protocol,
    listenPort,
    destinationPort: nodePort,
    proxyProtocol: values['uses-proxyprotocol'] ?? defaults.usesProxyProtocol ?? false,
    ...(protocol === 'tcp'
      ? {}
      : {
          http: {
            cookieName: values['http-cookie-name'] ?? DEFAULT_HTTP.cookieName,
            cookieLifetime: values['http-cookie-lifetime']?.seconds ?? DEFAULT_HTTP.cookieLifetime,
            ...present('timeoutIdle', values['http-timeout-idle']?.seconds),
            redirectHttp: values['http-redirect-http'] ?? false,
            stickySessions: values['http-sticky-sessions'] ?? false,
            certificates: [],
          },
        }),
    healthCheck: wantedHealthCheck(protocol, nodePort, values, defaults),
  }
}

/** Zero by setting counts as not set. */
const set = (value: number | undefined) => (value === undefined || value === 0 ? undefined : value)
const wholeSeconds = (ms: number | undefined) => (set(ms) === undefined ? undefined : Math.trunc((ms ?? 0) / 1000))

/** Only when something is asked of the health check it follows the listener's protocol. */
function healthCheckProtocol(
  listenerProtocol: Protocol,
  values: AnnotationValues,
  defaults: HcloudLoadBalancerDefaults,
): Protocol {
  const asked = values['health-check-protocol']
  const triggers = [
    asked,
    values['health-check-port'],
    values['health-check-interval'] ?? set(defaults.healthCheckIntervalMs),
    values['health-check-timeout'] ?? set(defaults.healthCheckTimeoutMs),
    values['health-check-retries'] ?? set(defaults.healthCheckRetries),
  ]
  return triggers.some((value) => value !== undefined) ? (asked ?? listenerProtocol) : 'tcp'
}

function wantedHealthCheck(
  listenerProtocol: Protocol,
  nodePort: number,
  values: AnnotationValues,
  defaults: HcloudLoadBalancerDefaults,
): Listener['healthCheck'] {
  const interval = values['health-check-interval']?.seconds ?? wholeSeconds(defaults.healthCheckIntervalMs)
  const timeout = values['health-check-timeout']?.seconds ?? wholeSeconds(defaults.healthCheckTimeoutMs)
  const retries = values['health-check-retries'] ?? set(defaults.healthCheckRetries)
  const port = values['health-check-port']
  const protocol = healthCheckProtocol(listenerProtocol, values, defaults)
  return {
    protocol: protocol === 'tcp' ? 'tcp' : 'http',
    port: port ?? nodePort,
    interval: interval ?? DEFAULT_HEALTH.interval,
    timeout: timeout ?? DEFAULT_HEALTH.timeout,
    retries: retries ?? DEFAULT_HEALTH.retries,
    ...(protocol === 'tcp'
      ? {}
      : {
          http: {
            domain: values['health-check-http-domain'] ?? DEFAULT_HEALTH_HTTP.domain,
            path: values['health-check-http-path'] ?? DEFAULT_HEALTH_HTTP.path,
            response: DEFAULT_HEALTH_HTTP.response,
            statusCodes: values['http-status-codes'] ?? DEFAULT_HEALTH_HTTP.statusCodes,
            // The API has no https here: it is http with TLS.
            tls: protocol === 'https' || (values['health-check-http-validate-certificate'] ?? false),
          },
        }),
  }
}

function fieldNotes(service: ServiceProjection): Note[] {
  if (service.loadBalancerSourceRanges.length === 0) return []
  return [
    warning(
      'SourceRangesUnsupported',
      "spec.loadBalancerSourceRanges has no effect: Hetzner's load balancers take connections from everywhere",
    ),
  ]
}

function warning(reason: string, message: string): Note {
  return { type: 'Warning', reason, message }
}

/** What is no boolean is not true. */
function isTrue(text: string): boolean {
  const parsed = parseBool(text)
  return 'value' in parsed && parsed.value
}

function negated(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value
}

function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
}
