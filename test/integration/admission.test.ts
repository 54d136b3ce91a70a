import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import type { Call } from '../../src/call.ts'
import { ANNOTATIONS, type AnnotationName, PREFIX } from '../../src/cloud/hcloud/load-balancers/annotations.ts'
import { type DesireOptions, desire } from '../../src/cloud/hcloud/load-balancers/desire.ts'
import { messageOf } from '../../src/errors.ts'
import { projectService } from '../../src/events/projection.ts'
import { createKubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import type { KubeService } from '../../src/kubernetes/objects.ts'
import { custom, SERVICES } from '../../src/kubernetes/resources.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { startApiServer } from '../apiserver/start.ts'
import { eventually } from './world.ts'

const FILE = join(import.meta.dirname, '..', '..', 'k8s', 'admission', 'hetzner-annotations.yaml')
const BLANK = '\u00a0\ufeff \t'
const BOOL = { good: ['true', 'F', '1'], bad: ['yes', '', ' true', 'tRUE'] }
const SECONDS = { good: ['15', '1h30m', '1.5s', '+3s', '-0s', '250µs'], bad: ['', '15 s', '-3s', '1d', ' 4s'] }
const DOMAINS = {
  good: ['www.example.com', ` a.b.${BLANK}`, '_x.example.com.'],
  bad: ['', 'a b', '-a.example', 'a..b'],
}
const WORDS = (...good: string[]) => ({ good, bad: ['', 'udp', good.join()] })

/** What may and what may not be written, for every annotation that is looked at whatever the controller's settings are. */
const VALUES: Partial<Record<AnnotationName, { good: string[]; bad: string[]; with?: Record<string, string> }>> = {
  name: { good: ['web', ` web${BLANK}`], bad: ['', BLANK] },
  'algorithm-type': WORDS('round_robin', 'Least_Connections', `${BLANK}round_robin`),
  'node-selector': {
    good: ['', 'a=b', 'a==b,c!=d', 'example.com/role in (x, y),!z', 'a>1', 'x notin (q)', 'a='],
    bad: ['a=b,', 'a b', '=b', 'a in x', 'a/b/c=d', 'a=-x'],
  },
  'disable-public-network': BOOL,
  'use-private-ip': BOOL,
  'disable-private-ingress': BOOL,
  'ipv6-disabled': BOOL,
  hostname: { good: ['lb.example.com'], bad: [' '] },
  'ipv4-rdns': DOMAINS,
  'ipv6-rdns': DOMAINS,
  protocol: WORDS('tcp', 'HTTP', ' https '),
  'uses-proxyprotocol': BOOL,
  'http-cookie-name': { good: ['HCLBSTICKY', " a!'b` "], bad: ['', 'a b', 'ä', 'a;b'] },
  'http-cookie-lifetime': SECONDS,
  'http-timeout-idle': { good: ['30', '0045', '5m', '300.9s', '+60s'], bad: ['29', '301', '29.9s', '6m', '', 'x'] },
  'http-certificates': { good: ['a', ' 1 ,b'], bad: ['', 'a,,b', 'a, '] },
  'http-managed-certificate-domains': {
    good: ['a.example', 'a.example, b.example'],
    bad: ['', 'a.example,'],
    with: { 'certificate-type': ' managed' },
  },
  'http-redirect-http': BOOL,
  'http-sticky-sessions': BOOL,
  'health-check-protocol': WORDS('tcp', 'http', 'HTTPS'),
  'health-check-port': {
    good: ['80', '+0443', '65535', '1'],
    bad: ['0', '65536', 'http', '', '-1', '99999999999999999999'],
  },
  'health-check-interval': SECONDS,
  'health-check-timeout': SECONDS,
  'health-check-retries': { good: ['3', '-1', '+2'], bad: ['', '1.5', '3 '] },
  'health-check-http-domain': { good: ['', 'a.example '], bad: ['a b'], with: { 'health-check-protocol': 'http' } },
  'health-check-http-path': {
    good: ['/', ' /a?b=c '],
    bad: ['', 'a', '/a b', '/a#b'],
    with: { protocol: 'http', 'health-check-port': '80' },
  },
  'health-check-http-validate-certificate': { ...BOOL, with: { 'health-check-protocol': 'https' } },
  'http-status-codes': {
    good: ['2??,301', ' 2* '],
    bad: ['', 'ok', '2000'],
    with: { 'health-check-protocol': 'http' },
  },
}

/** Faults that the API server can't know of, or texts of which anything is right. */
const NOT_LOOKED_AT: readonly AnnotationName[] = [
  'type',
  'location',
  'network-zone',
  'private-ipv4',
  'private-subnet-ip-range',
  'certificate-type',
  'http-managed-certificate-name',
  'http-managed-certificate-acme-staging',
]

t.test('the committed policy, on the real API server', async (t) => {
  const server = await startApiServer()
  const log = createLogger({ level: 'silent' })
  const connection = await connect({ kubeconfig: [server.adminKubeconfig(join(t.testdir(), 'admin'))] }, log)
  t.teardown(async () => {
    connection.close()
    await server.stop()
  })
  const api = createKubernetesApi(connection)
  const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }

  const prefixed = (annotations: Record<string, string>) =>
    Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`${PREFIX}${name}`, value]))
  /** Why a Service with these annotations is refused; undefined when it is not. Nothing is stored. */
  async function refusal(annotations: Record<string, string>, spec: object = {}): Promise<string | undefined> {
    const service = {
      metadata: { name: 'web', namespace: 'default', annotations: prefixed(annotations) },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
    }
    try {
      await api.create(SERVICES, service, call, { dryRun: true })
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  for (const document of parseAllDocuments(readFileSync(FILE, 'utf8'))) {
    const { kind, ...manifest } = document.toJS()
    const plural =
      kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings'
    await api.create(custom('admissionregistration.k8s.io', 'v1', kind, plural, false), manifest, call)
  }
  await eventually(async () => (await refusal({ protocol: 'udp' })) !== undefined, 'the policy is in force')

  await t.test('every annotation: good values come in, bad ones are refused with what is right', async (t) => {
    const all = Object.keys(ANNOTATIONS) as AnnotationName[]
    t.same(
      all.filter((name) => !VALUES[name] && !NOT_LOOKED_AT.includes(name)),
      [],
      'none is forgotten',
    )
    for (const [name, { good, bad, with: others = {} }] of Object.entries(VALUES)) {
      for (const value of good) t.equal(await refusal({ ...others, [name]: value }), undefined, `${name}: "${value}"`)
      const kind = ANNOTATIONS[name as AnnotationName].kind.values.replaceAll('`', '')
      for (const value of bad) {
        const said = (await refusal({ ...others, [name]: value })) ?? ''
        t.ok(
          said.includes(`annotation ${PREFIX}${name}`) && said.includes(`write ${kind}`),
          `${name}: "${value}" ${said}`,
        )
      }
    }
  })

  await t.test('annotations that the controller does not look at may be anything', async (t) => {
    const notLookedAt: Record<string, string>[] = [
      { 'http-certificates': ',', 'certificate-type': 'managed' },
      { 'http-managed-certificate-domains': ',' },
      { 'health-check-http-path': 'x' },
      { 'health-check-http-path': 'x', protocol: 'http' },
      { 'health-check-http-path': 'x', protocol: 'http', 'health-check-port': '80', 'health-check-protocol': 'tcp' },
      { 'private-ipv4': 'x', unknown: 'x', id: 'x' },
      { 'ipv6-disabled': 'x', 'disable-private-ingress': 'x', hostname: 'lb.example.com' },
    ]
    for (const annotations of notLookedAt) t.equal(await refusal(annotations), undefined, JSON.stringify(annotations))
    t.equal(await refusal({ protocol: 'x' }, { type: 'ClusterIP' }), undefined, 'of another type')
    t.equal(await refusal({ protocol: 'x' }, { loadBalancerClass: 'example.com/x' }), undefined, 'of another class')
  })

  await t.test(
    'what is wrong only where the controller has a network is warned of, as the controller then refuses it',
    async (t) => {
      const warnings = async (annotations: Record<string, string>) => {
        const body = JSON.stringify({
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'web', annotations: prefixed(annotations) },
          spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
        })
        const path = '/api/v1/namespaces/default/services'
        const headers = { 'content-type': 'application/json' }
        const request = { method: 'POST', path, query: { dryRun: 'All' }, headers, body, timeoutMs: 10_000 }
        const { status, headers: said } = await connection.request(request)
        t.equal(status, 201, 'it comes in all the same')
        return String(said.warning ?? '')
      }
      await eventually(async () => (await warnings({ 'private-ipv4': 'x' })) !== '', 'the second policy is in force')
      for (const [name, values] of Object.entries({
        'private-ipv4': [
          '10.0.0.5',
          '',
          ` 10.0.0.5${BLANK}`,
          '10.0.0',
          '10.0.0.256',
          '010.0.0.1',
          'x',
          '10.0.0.1/24',
          '::1',
        ],
        'private-subnet-ip-range': [
          '10.0.0.0/24',
          ' 10.0.0.0/0 ',
          '10.0.0.0/032',
          '10.0.0.0',
          '10.0.0.0/33',
          '',
          '10.0.0.0/0001',
          '::/64',
          'x',
        ],
      }))
        for (const value of values) {
          const parsed = ANNOTATIONS[name as AnnotationName].kind.parse(value)
          const said = await warnings({ [name]: value })
          t.equal('fault' in parsed, said !== '', `${name}: "${value}" ${said}`)
          if (said !== '') t.match(said, /is not right where HCLOUD_NETWORK is set, write (IPv4 address|CIDR)/)
        }
    },
  )

  await t.test('a Service that was wrong before can be changed and deleted, and not made worse', async (t) => {
    const at = { namespace: 'default', name: 'old' }
    const policies = custom('admissionregistration.k8s.io', 'v1', '', 'validatingadmissionpolicybindings', false)
    const [binding] = (await api.list(policies, {}, call)).items
    await api.delete(policies, { name: binding?.metadata.name ?? '' }, call)
    await eventually(async () => (await refusal({ protocol: 'udp' })) === undefined, 'the policy is out of force')
    await api.create(
      SERVICES,
      {
        metadata: { ...at, annotations: prefixed({ protocol: 'udp' }), finalizers: ['example.com/keep'] },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
      },
      call,
    )
    const { kind: _, apiVersion: __, ...again } = binding as { kind?: string; apiVersion?: string; metadata: object }
    const name = 'windlass-hetzner-annotations'
    const manifest = { ...again, metadata: { name } }
    await api.create({ ...policies, kind: 'ValidatingAdmissionPolicyBinding' }, manifest, call)
    await eventually(async () => (await refusal({ protocol: 'udp' })) !== undefined, 'the policy is in force again')
    const annotate = (annotations: Record<string, string | null>) =>
      api.patch(SERVICES, at, { type: 'merge', body: { metadata: { annotations } } }, call)
    await t.resolves(annotate({ note: 'x' }))
    await t.rejects(annotate({ [`${PREFIX}protocol`]: 'sctp' }), { message: /annotation .*protocol: "sctp"/ })
    await t.rejects(annotate({ [`${PREFIX}name`]: '' }))
    await api.delete(SERVICES, at, call)
    await t.resolves(api.patch(SERVICES, at, { type: 'merge', body: { metadata: { finalizers: null } } }, call))
  })

  await t.test('nothing is refused that the controller takes, under any settings', async (t) => {
    const defaults = {
      enabled: true,
      location: 'fsn1',
      disablePrivateIngress: false,
      disableIpv6: false,
      usePrivateIp: false,
    }
    const settings: DesireOptions[] = [true, false].flatMap((hasNetwork) =>
      [{}, { healthCheckRetries: 3 }].map((more) => ({
        hasNetwork,
        robotEnabled: false,
        defaults: { ...defaults, ...more },
      })),
    )
    const service = (annotations: Record<string, string>) =>
      projectService({
        metadata: { name: 'web', namespace: 'default', uid: 'u', annotations: prefixed(annotations) },
        spec: { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30080 }] },
      } as unknown as KubeService)
    const names = Object.keys(ANNOTATIONS) as AnnotationName[]
    const texts = Object.values(VALUES).flatMap(({ good, bad }) => [...good, ...bad])
    const pieces = [
      '',
      ' ',
      '\n',
      '\u2028',
      '\u0085',
      '-',
      '+',
      '0',
      '9',
      '.',
      's',
      'h',
      ',',
      '/',
      '(',
      ')',
      '!',
      '=',
      'a',
      'K',
    ]
    const value = fc.oneof(
      fc.constantFrom(...texts),
      fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((all) => all.join('')),
      fc.tuple(fc.constantFrom(...texts), fc.constantFrom(...pieces)).map(([text, piece]) => `${piece}${text}`),
    )
    const one = fc
      .constantFrom(...names)
      .chain((name) =>
        fc.tuple(fc.constant(name), VALUES[name] ? fc.oneof(value, fc.constantFrom(...VALUES[name].good)) : value),
      )
    let taken = 0
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 4 }), async (pairs) => {
        const annotations = Object.fromEntries(pairs)
        const controllerTakes = settings.some((options) => {
          const { faults, faultsIfMade } = desire(service(annotations), [], options)
          return faults.length + faultsIfMade.length === 0
        })
        if (!controllerTakes) return true
        taken++
        const said = await refusal(annotations)
        if (said !== undefined) throw new Error(`${JSON.stringify(annotations)}: ${said}`)
        return true
      }),
      { numRuns: 1500 },
    )
    t.ok(taken > 100, `${taken} that the controller takes`)
  })
})
