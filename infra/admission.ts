import { stringify } from 'yaml'
import { ANNOTATIONS, type AnnotationName, PREFIX } from '../src/cloud/hcloud/load-balancers/annotations.ts'
import type { AnnotationKind } from '../src/cloud/hcloud/load-balancers/parsers.ts'
import * as kinds from '../src/cloud/hcloud/load-balancers/parsers.ts'
import { CLUSTER } from '../src/config/table/windlass.ts'

/** What is optional of `kubectl apply`: annotations that the Service controller would refuse are refused there. */
export const ADMISSION_PATH = 'k8s/admission/hetzner-annotations.yaml'

const NAME = 'windlass-hetzner-annotations'

/**
 * A policy that refuses, and one that warns of what is wrong under some settings of the controller. Nothing is refused that the controller
 * takes, whatever its settings are.
 */
export function admissionPolicy(): string {
  const head =
    '# Made by infra/docs.ts from the table in src/cloud/hcloud/load-balancers/annotations.ts: change it there.\n' +
    '# Optional, for Kubernetes 1.30 and newer.\n'
  const names = Object.keys(ANNOTATIONS) as AnnotationName[]
  const manifests = [
    ...bound(
      NAME,
      'Deny',
      names.filter((name) => !OF_A_NETWORK.has(name)).flatMap((name) => validation(name)),
    ),
    ...bound(
      `${NAME}-of-a-network`,
      'Warn',
      [...OF_A_NETWORK].flatMap((name) => validation(name, WITH_NETWORK)),
    ),
  ]
  return `${head}${manifests.map((manifest) => stringify(manifest, { lineWidth: 0 })).join('---\n')}`
}

/** Looked at only where `HCLOUD_NETWORK` is set, which the API server does not know. */
const OF_A_NETWORK: ReadonlySet<AnnotationName> = new Set(['private-ipv4', 'private-subnet-ip-range'])
const WITH_NETWORK = 'is not right where HCLOUD_NETWORK is set'

/** A policy and its binding. */
function bound(name: string, action: 'Deny' | 'Warn', validations: object[]): object[] {
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      // An expression that can't be evaluated must not keep a Service out.
      failurePolicy: 'Ignore',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['services'] },
        ],
      },
      matchConditions: [
        {
          name: 'a-load-balancer-of-ours',
          expression: `has(object.spec.type) && object.spec.type == 'LoadBalancer' && (!has(object.spec.loadBalancerClass) || object.spec.loadBalancerClass == '${CLUSTER.hcloudLoadBalancerClass.default}')`,
        },
        // Its finalizer must come off whatever its annotations are.
        { name: 'stays', expression: '!has(object.metadata.deletionTimestamp)' },
      ],
      variables: [
        { name: 'now', expression: 'has(object.metadata.annotations) ? object.metadata.annotations : {}' },
        // What was wrong before does not keep other changes out.
        {
          name: 'before',
          expression:
            "oldObject != null && has(oldObject.spec.type) && oldObject.spec.type == 'LoadBalancer' && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}",
        },
      ],
      validations,
    },
  }
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: [action] },
  }
  return [policy, binding]
}

function validation(name: AnnotationName, wrong = 'is not right'): object[] {
  const kind: AnnotationKind<unknown> = ANNOTATIONS[name].kind
  const check = checkOf(kind)
  const used = USED[name]
  if (check === undefined) return []
  const key = `'${PREFIX}${name}'`
  const value = `variables.now[${key}]`
  const unchanged = `${key} in variables.before && variables.before[${key}] == ${value}`
  const unused = used === undefined ? [] : [`!(${used})`]
  const message = `annotation ${PREFIX}${name} has a value that ${wrong}, write ${kind.values.replaceAll('`', '')}`
  return [
    {
      expression: [`!(${key} in variables.now)`, `(${unchanged})`, ...unused, `(${check(value)})`].join(' || '),
      messageExpression: `'annotation ${PREFIX}${name}: "' + ${value} + '" ${wrong}, write ${kind.values.replaceAll('`', '').replaceAll("'", "\\'")}'`,
      message,
      reason: 'Invalid',
    },
  ]
}

const annotation = (name: AnnotationName) => `'${PREFIX}${name}'`
const present = (name: AnnotationName) => `${annotation(name)} in variables.now`
const isManaged = `${present('certificate-type')} && variables.now[${annotation('certificate-type')}].matches(${raw(`^${blanks()}managed${blanks()}$`)})`
const isHttp = (name: AnnotationName) =>
  `${present(name)} && variables.now[${annotation(name)}].matches(${raw(`^${blanks()}(?i:https?)${blanks()}$`)})`
const TRIGGERS = ['health-check-port', 'health-check-interval', 'health-check-timeout', 'health-check-retries'] as const
const usesHttpCheck = `(${isHttp('health-check-protocol')}) || (!(${present('health-check-protocol')}) && ${isHttp('protocol')} && (${TRIGGERS.map(present).join(' || ')}))`

/**
 * When the controller looks at an annotation, for those at which it does not always look.
 */
const USED: Partial<Record<AnnotationName, string>> = {
  'disable-private-ingress': `!(${present('hostname')})`,
  'ipv6-disabled': `!(${present('hostname')})`,
  'http-certificates': `!(${isManaged})`,
  'http-managed-certificate-domains': isManaged,
  'health-check-http-domain': usesHttpCheck,
  'health-check-http-path': usesHttpCheck,
  'health-check-http-validate-certificate': usesHttpCheck,
  'http-status-codes': usesHttpCheck,
}

/** What JavaScript's `trim` takes for blank, as RE2 writes it. */
function space(): string {
  return String.raw`\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
}
function blanks(): string {
  return `[${space()}]*`
}
const solid = (but = '') => `[^${space()}${but}]`

/** CEL's literal in which a backslash is one. */
function raw(pattern: string): string {
  return `r"${pattern}"`
}
const like = (pattern: string) => (value: string) => `${value}.matches(${raw(pattern)})`
const trimmed = (pattern: string) => like(`^${blanks()}(?:${pattern})${blanks()}$`)

const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const IPV4 = String.raw`${BYTE}(?:\.${BYTE}){3}`
const NUMBER = String.raw`(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)`
const UNIT = '(?:ns|us|µs|μs|ms|s|m|h)'
const SELECTOR_BLANK = String.raw`[ \t\r\n]*`
const LABEL = '[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?'
const KEY = `(?:[-a-z0-9.]+/)?${LABEL}`
const SET = String.raw`[ \t\r\n]+(?:in|notin)${SELECTOR_BLANK}\([-A-Za-z0-9_., \t\r\n]*\)`
const EXACT = `${SELECTOR_BLANK}(?:==|=|!=|>|<)${SELECTOR_BLANK}(?:${LABEL})?`
const REQUIREMENT = `${SELECTOR_BLANK}(?:!${SELECTOR_BLANK}${KEY}|${KEY}(?:${SET}|${EXACT})?)${SELECTOR_BLANK}`
const DOMAIN_PART = '[a-zA-Z0-9_](?:[a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?'
const DURATION = `[+]?(?:${NUMBER}${UNIT})+|[+-]?0|-(?:0*(?:[.][0-9]*)?${UNIT})+`

/**
 * Each at least as wide as the kind's parser: a test holds them against each other. Where RE2 can't say it all (a selector's values, the
 * length of a domain) the controller still does.
 */
const CHECKS = new Map<AnnotationKind<never> | AnnotationKind<unknown>, (value: string) => string>([
  [kinds.bool, like('^(?:1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$')],
  [kinds.text, like(solid())],
  [kinds.items, like(`^[^,]*${solid(',')}[^,]*(?:,[^,]*${solid(',')}[^,]*)*$`)],
  [kinds.seconds, like(`^(?:[0-9]+|${DURATION})$`)],
  [kinds.integer, like('^[+-]?[0-9]+$')],
  [
    kinds.port,
    (value) =>
      `${like('^[+]?0*[0-9]{1,5}$')(value)} && int(${value}.replace('+', '')) >= 1 && int(${value}.replace('+', '')) <= 65535`,
  ],
  [kinds.selector, like(`^(?:${REQUIREMENT}(?:,${REQUIREMENT})*|${SELECTOR_BLANK})$`)],
  [kinds.domain, trimmed(String.raw`(?:${DOMAIN_PART}\.)*${DOMAIN_PART}\.?`)],
  [kinds.hostHeader, trimmed(`${solid()}*`)],
  [kinds.urlPath, trimmed(`/${solid('#')}*`)],
  [kinds.cookieName, trimmed("[!#$%&'*+.^_`|~0-9A-Za-z-]+")],
  [kinds.ipv4, like(`^${blanks()}(?:${IPV4})?${blanks()}$`)],
  [kinds.ipv4Network, trimmed(`${IPV4}/0{0,3}(?:[0-9]|[12][0-9]|3[0-2])`)],
  [kinds.statusCodes, like(`^${blanks()}[0-9?*]{1,3}${blanks()}(?:,${blanks()}[0-9?*]{1,3}${blanks()})*$`)],
])

function checkOf(kind: AnnotationKind<unknown>): ((value: string) => string) | undefined {
  const { words, bounds } = kind
  if (words) return trimmed(`(?i:${words.join('|')})`)
  if (bounds) {
    const { least, most } = bounds
    // Parts below a second are cut off before the bounds are looked at.
    const within = (what: string, seconds: (n: number) => string) =>
      `${what} >= ${seconds(least)} && ${what} < ${seconds(most + 1)}`
    return (value) =>
      `${like('^0*[0-9]{1,9}$')(value)} ? (${within(`int(${value})`, String)}) : (${like(`^(?:${DURATION})$`)(value)} && ${within(`duration(${value})`, (n) => `duration('${n}s')`)})`
  }
  return CHECKS.get(kind)
}
