import t, { type Test } from 'tap'
import type { JsonObject } from './json.ts'
import { type KubernetesSimulator, startKubernetesSimulator } from './simulator.ts'

interface Answer {
  status: number
  body: JsonObject & {
    metadata: JsonObject
    message?: string
    reason?: string
    details?: { causes?: { field: string }[] }
    items?: JsonObject[]
  }
}

const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'
const NODES = '/api/v1/nodes'
const SERVICES = '/api/v1/namespaces/default/services'

async function setUp(t: Test) {
  const simulator = await startKubernetesSimulator()
  t.teardown(() => simulator.close())
  const ask = async (method: string, path: string, body?: unknown, type = 'application/json', headers = {}) => {
    const answer = await fetch(`${simulator.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${simulator.token}`,
        ...(body === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : { text } } as Answer
  }
  return { simulator, ask }
}

const node = (name: string, more: JsonObject = {}) => ({ metadata: { name }, ...more })
const service = (name: string, spec: JsonObject = {}) => ({
  metadata: { name },
  spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
})
const fields = ({ body }: Answer) => body.details?.causes?.map(({ field }) => field)

/** Events of a watch, as they come. */
async function watch(simulator: KubernetesSimulator, path: string, signal?: AbortSignal) {
  const answer = await fetch(`${simulator.url}${path}`, {
    headers: { authorization: `Bearer ${simulator.token}` },
    ...(signal ? { signal } : {}),
  })
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    status: answer.status,
    async next(): Promise<{ type: string; object: JsonObject & { metadata: JsonObject; code?: number } } | undefined> {
      for (;;) {
        const end = text.indexOf('\n')
        if (end !== -1) {
          const line = text.slice(0, end)
          text = text.slice(end + 1)
          return JSON.parse(line)
        }
        const chunk = await reader?.read()
        if (!chunk || chunk.done) return undefined
        text += chunk.value
      }
    },
  }
}

t.test('create', async (t) => {
  const { ask } = await setUp(t)
  t.test('gives uid, version and time, whatever was sent', async (t) => {
    const { status, body } = await ask('POST', NODES, {
      metadata: { name: 'a', uid: 'mine', creationTimestamp: '2000-01-01T00:00:00Z' },
    })
    t.equal(status, 201)
    t.match(body, { apiVersion: 'v1', kind: 'Node', metadata: { uid: /^[0-9a-f-]{36}$/, resourceVersion: /^\d+$/ } })
    t.not(body.metadata.creationTimestamp, '2000-01-01T00:00:00Z')
  })
  t.test('refuses a second of one name, a bad name, no name, a version, and another kind', async (t) => {
    t.match(await ask('POST', NODES, node('a')), { status: 409, body: { reason: 'AlreadyExists' } })
    t.match(await ask('POST', NODES, node('A_b')), { status: 422 })
    t.match(await ask('POST', NODES, { metadata: {} }), { status: 422 })
    t.match(await ask('POST', NODES, { metadata: { name: 'b', resourceVersion: '1' } }), { status: 400 })
    t.match(await ask('POST', NODES, { apiVersion: 'v1', kind: 'Service', ...node('b') }), { status: 400 })
    t.match(await ask('POST', NODES, 'no json'), { status: 400 })
  })
  t.test('makes a name from generateName', async (t) => {
    const { body } = await ask('POST', NODES, { metadata: { generateName: 'x-' } })
    t.match(body.metadata.name, /^x-[0-9a-f]{5}$/)
  })
  t.test('needs the namespace to exist, and to be the one of the path', async (t) => {
    t.match(await ask('POST', '/api/v1/namespaces/nowhere/services', service('a')), { status: 404 })
    t.match(await ask('POST', SERVICES, { ...service('a'), metadata: { name: 'a', namespace: 'other' } }), {
      status: 400,
    })
  })
  t.test('stores nothing on a dry run', async (t) => {
    t.match(await ask('POST', `${NODES}?dryRun=All`, node('dry')), { status: 201 })
    t.match(await ask('GET', `${NODES}/dry`), { status: 404, body: { reason: 'NotFound', kind: 'Status' } })
    t.match(await ask('POST', `${NODES}?dryRun=Some`, node('dry')), { status: 400 })
  })
})

t.test('update', async (t) => {
  const { ask, simulator } = await setUp(t)
  const created = (await ask('POST', NODES, node('a', { status: { phase: 'x' } }))).body
  t.test('of an older version is refused, of none goes through', async (t) => {
    await ask('PATCH', `${NODES}/a`, { metadata: { labels: { a: '1' } } }, MERGE)
    t.match(await ask('PUT', `${NODES}/a`, created), { status: 409, body: { reason: 'Conflict' } })
    t.match(await ask('PUT', `${NODES}/a`, node('a')), { status: 200 })
  })
  t.test('that changes nothing makes no new version', async (t) => {
    const before = (await ask('GET', `${NODES}/a`)).body
    t.same((await ask('PUT', `${NODES}/a`, before)).body, before)
    t.same((await ask('PATCH', `${NODES}/a`, {}, MERGE)).body, before)
  })
  t.test('leaves the status alone, and through the status the spec', async (t) => {
    await ask('PUT', `${NODES}/a`, node('a', { spec: { unschedulable: true }, status: { phase: 'y' } }))
    t.match(simulator.get('nodes', 'a'), { spec: { unschedulable: true }, status: { phase: 'x' } })
    const patch = { metadata: { labels: { b: '2' } }, spec: { unschedulable: false }, status: { phase: 'z' } }
    t.match(await ask('PATCH', `${NODES}/a/status`, patch, MERGE), { status: 200 })
    t.match(simulator.get('nodes', 'a'), {
      metadata: { labels: { b: '2' } },
      spec: { unschedulable: true },
      status: { phase: 'z' },
    })
  })
  t.test('refuses another uid: a PUT as conflict, a patch as invalid', async (t) => {
    t.match(await ask('PUT', `${NODES}/a`, { metadata: { name: 'a', uid: 'other' } }), { status: 409 })
    const answer = await ask('PATCH', `${NODES}/a`, { metadata: { uid: 'other' } }, MERGE)
    t.equal(answer.status, 422)
    t.same(fields(answer), ['metadata.uid'])
  })
  t.test('refuses another name, a body without one, and an object that is not there', async (t) => {
    t.match(await ask('PUT', `${NODES}/a`, node('b')), { status: 400 })
    t.match(await ask('PUT', `${NODES}/a`, {}), { status: 400 })
    t.match(await ask('PUT', `${NODES}/missing`, node('missing')), { status: 404 })
  })
  t.test('of a lease needs the version', async (t) => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'
    const lease = (await ask('POST', leases, { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } })).body
    t.match(await ask('PUT', `${leases}/l`, { metadata: { name: 'l' } }), { status: 422 })
    t.match(await ask('PUT', `${leases}/l`, { ...lease, spec: { holderIdentity: 'b' } }), { status: 200 })
  })
})

t.test('patch', async (t) => {
  const { ask, simulator } = await setUp(t)
  await ask('POST', NODES, node('a', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }))
  t.test('under an older version is refused', async (t) => {
    const { resourceVersion } = (await ask('PATCH', `${NODES}/a`, { metadata: { labels: { n: '1' } } }, MERGE)).body
      .metadata
    await ask('PATCH', `${NODES}/a`, { metadata: { labels: { n: '2' } } }, MERGE)
    const late = { metadata: { resourceVersion, labels: { n: '3' } } }
    for (const type of [MERGE, STRATEGIC]) t.match(await ask('PATCH', `${NODES}/a`, late, type), { status: 409 })
  })
  t.test('by JSON patch', async (t) => {
    const patch = (...operations: JsonObject[]) => ask('PATCH', `${NODES}/a`, operations, JSON_PATCH)
    const taint = { key: 'y', effect: 'NoExecute' }
    t.match(
      await patch(
        { op: 'test', path: '/spec/taints/0/key', value: 'x' },
        { op: 'add', path: '/spec/taints/-', value: taint },
      ),
      { status: 200 },
    )
    t.match(simulator.get('nodes', 'a')?.spec, { taints: [{ key: 'x' }, { key: 'y' }] })
    const failed = await patch(
      { op: 'test', path: '/spec/taints/0/key', value: 'z' },
      { op: 'remove', path: '/spec/taints/0' },
    )
    t.match(failed, { status: 422, body: { reason: 'Invalid', message: /due to an error in our request/ } })
    t.equal(fields(failed), undefined)
    t.match(await patch({ op: 'remove', path: '/spec/taints/7' }), { status: 422 })
    t.match(await patch({ op: 'odd', path: '/spec' }), { status: 422 })
    t.match(
      await patch(
        { op: 'replace', path: '/metadata/labels/n', value: '9' },
        { op: 'move', from: '/metadata/labels/n', path: '/metadata/labels/a~1b' },
      ),
      { status: 200 },
    )
    t.match(await patch({ op: 'copy', from: '/metadata/labels/a~1b', path: '/metadata/labels/c' }), {
      body: { metadata: { labels: { 'a/b': '9', c: '9' } } },
    })
    t.match(await ask('PATCH', `${NODES}/a`, {}, JSON_PATCH), { status: 400 })
  })
  t.test('of an unknown content type gets 415, of what is no object 400, of what is not there 404', async (t) => {
    t.match(await ask('PATCH', `${NODES}/a`, {}, 'application/json'), { status: 415 })
    t.match(await ask('PATCH', `${NODES}/a`, 'x', 'text/plain'), { status: 415 })
    t.match(await ask('PATCH', `${NODES}/a`, [], MERGE), { status: 400 })
    t.match(await ask('PATCH', `${NODES}/b`, {}, MERGE), { status: 404 })
  })
  t.test('by apply creates or merges, and needs a field manager and the type', async (t) => {
    const path = `${NODES}/applied?fieldManager=me&force=true`
    const head = { apiVersion: 'v1', kind: 'Node' }
    t.match(await ask('PATCH', path, { ...head, metadata: { labels: { a: '1' } } }, APPLY), {
      status: 201,
      body: { metadata: { name: 'applied' } },
    })
    t.match(await ask('PATCH', path, 'apiVersion: v1\nkind: Node\nmetadata: {labels: {b: "2"}}', APPLY), {
      status: 200,
      body: { metadata: { labels: { a: '1', b: '2' } } },
    })
    t.match(await ask('PATCH', `${NODES}/applied`, head, APPLY), { status: 422 })
    t.match(await ask('PATCH', path, {}, APPLY), { status: 400 })
    t.match(await ask('PATCH', path, { ...head, metadata: { managedFields: [{}] } }, APPLY), { status: 400 })
    t.match(await ask('PATCH', `${NODES}/none/status?fieldManager=me`, head, APPLY), { status: 404 })
  })
})

t.test('nodes', async (t) => {
  const { ask } = await setUp(t)
  await ask('POST', NODES, node('a', { spec: { podCIDRs: ['10.0.0.0/24'] } }))
  const patch = (body: object, at = '') => ask('PATCH', `${NODES}/a${at}`, body, MERGE)
  t.test('take a provider id once', async (t) => {
    t.match(await patch({ spec: { providerID: 'cloud://1' } }), { status: 200 })
    for (const providerID of ['cloud://2', null]) {
      const answer = await patch({ spec: { providerID } })
      t.equal(answer.status, 422)
      t.same(fields(answer), ['spec.providerID'])
    }
  })
  t.test('keep their pod CIDRs', async (t) => {
    t.same(fields(await patch({ spec: { podCIDRs: ['10.1.0.0/24'] } })), ['spec.podCIDRs'])
  })
  t.test('refuse taints without key, of an unknown effect, and doubles', async (t) => {
    const taints = [
      { effect: 'NoSchedule' },
      { key: 'a', effect: 'Odd' },
      { key: 'b', effect: 'NoExecute' },
      { key: 'b', effect: 'NoExecute' },
    ]
    t.same(fields(await patch({ spec: { taints } })), [
      'metadata.taints[0].key',
      'metadata.taints[1].effect',
      'metadata.taints[3]',
    ])
  })
  t.test('refuse one address twice', async (t) => {
    const address = { type: 'InternalIP', address: '10.0.0.1' }
    t.same(fields(await patch({ status: { addresses: [address, address] } }, '/status')), ['status.addresses[1]'])
  })
})

t.test('services', async (t) => {
  const { ask, simulator } = await setUp(t)
  const status = (name: string, ingress: unknown) =>
    ask('PATCH', `${SERVICES}/${name}/status`, { status: { loadBalancer: { ingress } } }, MERGE)
  t.test('get what the server fills in, and no status from their maker', async (t) => {
    const { body } = await ask('POST', SERVICES, {
      ...service('a', { externalTrafficPolicy: 'Local' }),
      status: { loadBalancer: { ingress: [{ ip: '1.1.1.1' }] } },
    })
    t.match(body, {
      spec: {
        clusterIP: /^10\.96\./,
        sessionAffinity: 'None',
        ports: [{ protocol: 'TCP', targetPort: 80, nodePort: Number }],
        healthCheckNodePort: Number,
      },
      status: { loadBalancer: {} },
    })
    t.same(body.status, { loadBalancer: {} })
  })
  t.test('have node ports of their own, and keep them', async (t) => {
    const { body } = await ask(
      'POST',
      SERVICES,
      service('b', {
        ports: [
          { name: 'x', port: 80 },
          { name: 'y', port: 81 },
        ],
      }),
    )
    const ports = (body.spec as { ports: { nodePort: number }[] }).ports.map(({ nodePort }) => nodePort)
    t.equal(new Set(ports).size, 2)
    await ask(
      'PATCH',
      `${SERVICES}/b`,
      {
        spec: {
          ports: [
            { name: 'x', port: 80 },
            { name: 'y', port: 81 },
          ],
        },
      },
      MERGE,
    )
    t.same(
      (simulator.get('services', 'b') as unknown as { spec: { ports: { nodePort: number }[] } }).spec.ports.map(
        ({ nodePort }) => nodePort,
      ),
      ports,
    )
    t.match(await ask('POST', SERVICES, service('c', { ports: [{ port: 80, nodePort: ports[0]! }] })), { status: 422 })
    t.match(await ask('POST', SERVICES, service('d', { allocateLoadBalancerNodePorts: false })), {
      body: { spec: { ports: [{ port: 80 }] } },
    })
  })
  t.test('lose what belongs to a type with the type', async (t) => {
    await status('a', [{ ip: '1.1.1.1' }])
    const { status: code, body } = await ask('PATCH', `${SERVICES}/a`, { spec: { type: 'ClusterIP' } }, MERGE)
    t.equal(code, 200)
    t.match(body, {
      spec: { healthCheckNodePort: undefined, externalTrafficPolicy: undefined, ports: [{ nodePort: undefined }] },
    })
    t.same(body.status, { loadBalancer: {} })
    t.same(fields(await status('a', [{ ip: '1.1.1.2' }])), ['status.loadBalancer.ingress'])
    t.match(await status('a', null), { status: 200 })
  })
  t.test('fill ipMode with VIP and check ingress', async (t) => {
    t.match(await status('b', [{ ip: '1.1.1.1' }, { hostname: 'lb.example.com' }]), {
      status: 200,
      body: { status: { loadBalancer: { ingress: [{ ipMode: 'VIP' }, { ipMode: undefined }] } } },
    })
    const bad = [
      { ip: '1.1.1.1/32' },
      { hostname: 'x', ipMode: 'VIP' },
      { ip: '::1', ipMode: 'Odd' },
      { hostname: '1.1.1.1' },
      { hostname: 'No_Name' },
    ]
    t.same(
      fields(await status('b', bad)),
      ['[0].ip', '[1].ipMode', '[2].ipMode', '[3].hostname', '[4].hostname'].map(
        (at) => `status.loadBalancer.ingress${at}`,
      ),
    )
  })
  t.test('take metadata through the status, but no spec', async (t) => {
    const patch = { metadata: { finalizers: ['a/b'], annotations: { x: 'y' } }, spec: { type: 'ClusterIP' } }
    await ask('PATCH', `${SERVICES}/b/status`, patch, STRATEGIC)
    t.match(simulator.get('services', 'b'), {
      metadata: { finalizers: ['a/b'], annotations: { x: 'y' } },
      spec: { type: 'LoadBalancer' },
    })
  })
  t.test('refuse an odd type, no ports, bad ports, ports without names and a changed class', async (t) => {
    t.same(fields(await ask('POST', SERVICES, service('x', { type: 'Odd' }))), ['spec.type'])
    t.same(fields(await ask('POST', SERVICES, service('x', { ports: [] }))), ['spec.ports'])
    t.same(fields(await ask('POST', SERVICES, service('x', { ports: [{ port: 0 }] }))), ['spec.ports[0].port'])
    t.same(fields(await ask('POST', SERVICES, service('x', { ports: [{ port: 1, name: 'a' }, { port: 2 }] }))), [
      'spec.ports[1].name',
    ])
    t.same(fields(await ask('PATCH', `${SERVICES}/b`, { spec: { loadBalancerClass: 'other' } }, MERGE)), [
      'spec.loadBalancerClass',
    ])
  })
})

t.test('delete', async (t) => {
  const { ask, simulator } = await setUp(t)
  t.test('with preconditions that do not hold is refused', async (t) => {
    const { metadata } = (await ask('POST', NODES, node('a'))).body
    for (const preconditions of [{ uid: 'other' }, { resourceVersion: '1' }])
      t.match(await ask('DELETE', `${NODES}/a`, { preconditions }), { status: 409 })
    t.match(await ask('DELETE', `${NODES}/a?dryRun=All`), { status: 200 })
    const { uid, resourceVersion } = metadata
    t.match(await ask('DELETE', `${NODES}/a`, { preconditions: { uid, resourceVersion } }), {
      status: 200,
      body: { kind: 'Status', status: 'Success' },
    })
    t.match(await ask('DELETE', `${NODES}/a`), { status: 404 })
  })
  t.test('marks an object with finalizers, which goes with the last of them and takes no new one', async (t) => {
    await ask('POST', SERVICES, { ...service('s'), metadata: { name: 's', finalizers: ['x/a', 'x/b'] } })
    t.match(await ask('DELETE', `${SERVICES}/s`), { status: 200, body: { metadata: { deletionTimestamp: String } } })
    const marked = simulator.get('services', 's')
    await ask('DELETE', `${SERVICES}/s`)
    t.same(simulator.get('services', 's'), marked)
    const late = await ask('PATCH', `${SERVICES}/s/status`, { metadata: { finalizers: ['x/c'] } }, STRATEGIC)
    t.equal(late.status, 422)
    t.same(fields(late), ['metadata.finalizers'])
    await ask('PATCH', `${SERVICES}/s`, { metadata: { finalizers: ['x/a'] } }, MERGE)
    t.ok(simulator.get('services', 's'))
    await ask('PATCH', `${SERVICES}/s/status`, { metadata: { finalizers: null } }, MERGE)
    t.equal(simulator.get('services', 's'), undefined)
  })
  t.test('of a namespace takes what is in it, and waits for finalizers', async (t) => {
    const inside = '/api/v1/namespaces/team/services'
    await ask('POST', '/api/v1/namespaces', node('team'))
    await ask('POST', inside, { ...service('held'), metadata: { name: 'held', finalizers: ['x/a'] } })
    await ask('POST', inside, service('free'))
    t.match(await ask('DELETE', '/api/v1/namespaces/team'), { status: 200, body: { status: { phase: 'Terminating' } } })
    t.match(await ask('GET', `${inside}/free`), { status: 404 })
    t.match(await ask('POST', inside, service('new')), { status: 403, body: { message: /being terminated/ } })
    await ask('PATCH', `${inside}/held`, { metadata: { finalizers: null } }, MERGE)
    t.match(await ask('GET', '/api/v1/namespaces/team'), { status: 404 })
  })
})

t.test('list', async (t) => {
  const { ask, simulator } = await setUp(t)
  for (const [i, name] of ['a', 'b', 'c', 'd', 'e'].entries())
    simulator.create('nodes', {
      metadata: { name, labels: { n: String(i), half: i < 3 ? 'first' : 'second' } },
      spec: { unschedulable: i === 0 },
    })
  const names = ({ body }: Answer) => body.items?.map((item) => (item.metadata as JsonObject).name)
  t.test('comes in pages of one version', async (t) => {
    const first = await ask('GET', `${NODES}?limit=2`)
    t.match(first.body, { kind: 'NodeList', metadata: { remainingItemCount: 3 } })
    simulator.create('nodes', { metadata: { name: 'bb' } })
    const second = await ask('GET', `${NODES}?limit=2&continue=${first.body.metadata.continue}`)
    const third = await ask('GET', `${NODES}?limit=2&continue=${second.body.metadata.continue}`)
    t.same([first, second, third].map(names), [['a', 'b'], ['c', 'd'], ['e']])
    t.equal(third.body.metadata.continue, undefined)
    t.equal(third.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
    simulator.delete('nodes', 'bb')
  })
  t.test('ends with 410 when the history of its first page is gone', async (t) => {
    for (const forget of [() => simulator.expireContinueTokens(), () => simulator.store.compact()]) {
      const { body } = await ask('GET', `${NODES}?limit=2`)
      forget()
      t.match(await ask('GET', `${NODES}?limit=2&continue=${body.metadata.continue}`), {
        status: 410,
        body: { reason: 'Expired' },
      })
    }
  })
  t.test('selects by label and field', async (t) => {
    const select = async (query: string) => names(await ask('GET', `${NODES}?${query}`))
    const label = (selector: string) => select(`labelSelector=${encodeURIComponent(selector)}`)
    t.same(await label('half=first,n!=1'), ['a', 'c'])
    t.same(await label('n in (1, 4)'), ['b', 'e'])
    t.same(await label('n notin (1,4),half==second'), ['d'])
    t.same(await label('half,!other'), ['a', 'b', 'c', 'd', 'e'])
    t.same(await label('other'), [])
    t.same(await select('fieldSelector=metadata.name%3Db'), ['b'])
    t.same(await select('fieldSelector=spec.unschedulable%3Dtrue'), ['a'])
    t.same(await select('fieldSelector=metadata.name!%3Db'), ['a', 'c', 'd', 'e'])
    t.match(await ask('GET', `${NODES}?fieldSelector=spec.odd%3D1`), { status: 400 })
    t.match(await ask('GET', `${NODES}?fieldSelector=x`), { status: 400 })
    t.match(await ask('GET', `${NODES}?labelSelector=%28`), { status: 400 })
  })
  t.test('spans namespaces, or one', async (t) => {
    simulator.create('services', { ...service('x'), metadata: { name: 'x', namespace: 'kube-system' } })
    simulator.create('services', service('y'))
    t.same(names(await ask('GET', '/api/v1/services')), ['y', 'x'])
    t.same(names(await ask('GET', SERVICES)), ['y'])
  })
  t.test('gives metadata alone to who asks for it', async (t) => {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
    const { body } = await ask('GET', NODES, undefined, undefined, { accept })
    t.match(body, { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' })
    t.same(Object.keys(body.items?.[0] ?? {}), ['kind', 'apiVersion', 'metadata'])
  })
  t.test('from a version of the future gets 504', async (t) => {
    t.match(await ask('GET', `${NODES}?resourceVersion=99999999`), { status: 504, body: { reason: 'Timeout' } })
    t.match(await ask('GET', `${NODES}?watch=true&resourceVersion=99999999`), { status: 504 })
  })
})

t.test('watch', async (t) => {
  const { ask, simulator } = await setUp(t)
  const version = () => simulator.store.version
  t.test('tells what happened since a version, in order', async (t) => {
    const from = version()
    simulator.create('nodes', node('a'))
    simulator.change('nodes', 'a', (a) => {
      a.metadata.labels = { x: '1' }
    })
    const events = await watch(simulator, `${NODES}?watch=1&resourceVersion=${from}`)
    simulator.delete('nodes', 'a')
    t.match(
      [await events.next(), await events.next(), await events.next()],
      [{ type: 'ADDED' }, { type: 'MODIFIED' }, { type: 'DELETED', object: { metadata: { labels: { x: '1' } } } }],
    )
  })
  t.test('without a version begins with what is there', async (t) => {
    simulator.create('nodes', node('b'))
    const events = await watch(simulator, `${NODES}?watch=true`)
    t.match(await events.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  })
  t.test('of a selector tells of objects that come into it and leave it', async (t) => {
    const events = await watch(simulator, `${NODES}?watch=true&resourceVersion=${version()}&labelSelector=x`)
    simulator.change('nodes', 'b', (b) => {
      b.metadata.labels = { x: '1' }
    })
    simulator.change('nodes', 'b', (b) => {
      b.metadata.labels = {}
    })
    t.match([await events.next(), await events.next()], [{ type: 'ADDED' }, { type: 'DELETED' }])
  })
  t.test('of one namespace, or one object, tells of no other', async (t) => {
    const events = await watch(
      simulator,
      `/api/v1/namespaces/kube-system/services?watch=true&resourceVersion=${version()}`,
    )
    const one = await watch(simulator, `${SERVICES}/web?watch=true&resourceVersion=${version()}`)
    simulator.create('services', service('other'))
    simulator.create('services', service('web'))
    simulator.create('services', { ...service('inside'), metadata: { name: 'inside', namespace: 'kube-system' } })
    t.match(await events.next(), { object: { metadata: { name: 'inside' } } })
    t.match(await one.next(), { object: { metadata: { name: 'web' } } })
  })
  t.test('from before the history gets an ERROR event', async (t) => {
    const from = version()
    simulator.store.compact()
    const events = await watch(simulator, `${NODES}?watch=true&resourceVersion=${from}`)
    t.match(await events.next(), { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
    t.equal(await events.next(), undefined)
    simulator.store.historyLimit = 3
    const old = version()
    for (const name of ['h1', 'h2', 'h3', 'h4']) simulator.create('nodes', node(name))
    t.match(await (await watch(simulator, `${NODES}?watch=true&resourceVersion=${old}`)).next(), { type: 'ERROR' })
    t.match(await (await watch(simulator, `${NODES}?watch=true&resourceVersion=${old + 1}`)).next(), {
      type: 'ADDED',
      object: { metadata: { name: 'h2' } },
    })
    simulator.store.historyLimit = 1000
  })
  t.test('sends bookmarks to who wants them, and ends at its time limit', async (t) => {
    simulator.watches.bookmarkIntervalMs = 20
    const events = await watch(
      simulator,
      `${NODES}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=${version()}`,
    )
    t.match(await events.next(), {
      type: 'BOOKMARK',
      object: { kind: 'Node', metadata: { resourceVersion: String(version()) } },
    })
    let event = await events.next()
    while (event) event = await events.next()
    t.equal(event, undefined)
  })
  t.test('can be frozen, cut, ended, failed and written to', async (t) => {
    const open = async () => watch(simulator, `${NODES}?watch=true&resourceVersion=${version()}`)
    const frozen = await open()
    simulator.watches.freeze('nodes')
    simulator.create('nodes', node('unseen'))
    const alive = await open()
    simulator.create('nodes', node('seen'))
    t.match(await alive.next(), { object: { metadata: { name: 'seen' } } })
    simulator.watches.write('{"type":"BOOKMARK","object":{"metadata":{}}}\n')
    t.match(await alive.next(), { type: 'BOOKMARK' })
    t.match(await frozen.next(), { type: 'BOOKMARK' })
    simulator.watches.fail({ code: 500, reason: 'InternalError', message: 'x' }, 'nodes')
    t.match(await alive.next(), { type: 'ERROR', object: { code: 500 } })
    const cut = await open()
    simulator.watches.drop()
    await t.rejects(cut.next())
    const ended = await open()
    simulator.watches.finish()
    t.equal(await ended.next(), undefined)
  })
  t.test('is not a watch-list, and wants a number', async (t) => {
    t.match(await ask('GET', `${NODES}?watch=true&sendInitialEvents=true`), { status: 422 })
    t.match(await ask('GET', `${NODES}?watch=true&resourceVersion=x`), { status: 400 })
  })
})

t.test('events need the namespace of their object', async (t) => {
  const { ask } = await setUp(t)
  const event = (namespace: string | undefined, of: string) =>
    ask('POST', `/api/v1/namespaces/${of}/events`, {
      metadata: { name: `e${Math.random()}` },
      involvedObject: { kind: 'X', name: 'x', ...(namespace ? { namespace } : {}) },
    })
  t.match(await event('default', 'default'), { status: 201 })
  t.match(await event(undefined, 'default'), { status: 201 })
  t.match(await event('default', 'kube-system'), { status: 422 })
  t.match(await event(undefined, 'kube-public'), { status: 422 })
})

t.test('access', async (t) => {
  const { ask, simulator } = await setUp(t)
  t.test('without a known token is refused', async (t) => {
    t.match(await ask('GET', NODES, undefined, undefined, { authorization: '' }), {
      status: 401,
      body: { reason: 'Unauthorized' },
    })
    t.match(await ask('GET', NODES, undefined, undefined, { authorization: 'Bearer x' }), { status: 401 })
  })
  t.test('goes by verb, resource, group and namespace', async (t) => {
    simulator.access.grant('limited', {
      user: 'reader',
      rules: [
        { verbs: ['get', 'list'], resources: ['nodes'] },
        { verbs: ['patch'], resources: ['services/status'], namespaces: ['default'] },
        { verbs: ['*'], resources: ['*'], groups: ['coordination.k8s.io'] },
      ],
    })
    const as = { authorization: 'Bearer limited' }
    const limited = (method: string, path: string, body?: unknown) => ask(method, path, body, MERGE, as)
    t.match(await limited('GET', NODES), { status: 200 })
    t.match(await limited('GET', `${NODES}?watch=true`), {
      status: 403,
      body: { message: /User "reader" cannot watch resource "nodes"/ },
    })
    t.match(await limited('PATCH', `${SERVICES}/a`, {}), { status: 403 })
    t.match(await limited('PATCH', `${SERVICES}/a/status`, {}), { status: 404 })
    t.match(await limited('PATCH', '/api/v1/namespaces/kube-system/services/a/status', {}), { status: 403 })
    t.match(await limited('GET', '/apis/coordination.k8s.io/v1/leases'), { status: 200 })
    simulator.access.revoke('limited')
    t.match(await limited('GET', NODES), { status: 401 })
  })
})

t.test('paths', async (t) => {
  const { ask, simulator } = await setUp(t)
  t.test('that are unknown get 404 with a Status', async (t) => {
    for (const path of [
      '/',
      '/api/v1/odd',
      '/apis/odd/v1/nodes',
      `${NODES}/a/odd`,
      '/api/v1/services/a',
      '/api/v1/namespaces/default/nodes/a',
    ])
      t.match(await ask('GET', path), { status: 404, body: { kind: 'Status' } }, path)
  })
  t.test('of discovery and health are there', async (t) => {
    t.match(await ask('GET', '/api/v1'), { body: { kind: 'APIResourceList' } })
    t.match(await ask('GET', '/apis'), {
      body: { groups: [{ name: 'coordination.k8s.io' }, { name: 'discovery.k8s.io' }] },
    })
    t.match(await ask('GET', '/apis/discovery.k8s.io/v1'), { body: { resources: [{ name: 'endpointslices' }] } })
    t.match(await ask('GET', '/version'), { body: { major: '1' } })
    t.match(await ask('GET', '/readyz'), { status: 200, body: { text: 'ok' } })
  })
  t.test('take only their methods and formats', async (t) => {
    t.match(await ask('DELETE', NODES), { status: 405 })
    t.match(await ask('POST', `${NODES}/a`, {}), { status: 405 })
    t.match(await ask('POST', '/version', {}), { status: 405 })
    t.match(await ask('GET', NODES, undefined, undefined, { accept: 'application/vnd.kubernetes.protobuf' }), {
      status: 406,
    })
    t.match(await ask('POST', NODES, 'x'.repeat(4_000_000)), { status: 413 })
  })
  t.test('of other kinds can be added', async (t) => {
    const custom = await startKubernetesSimulator({
      kinds: [
        { group: 'metallb.io', version: 'v1beta1', plural: 'ipaddresspools', kind: 'IPAddressPool', namespaced: true },
      ],
    })
    t.teardown(() => custom.close())
    custom.create('ipaddresspools', { metadata: { name: 'p' }, spec: { addresses: ['1.1.1.1/32'] } })
    const answer = await fetch(`${custom.url}/apis/metallb.io/v1beta1/namespaces/default/ipaddresspools/p`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${custom.token}`, 'content-type': STRATEGIC },
      body: '{}',
    })
    t.equal(answer.status, 415)
  })
  t.test('are all in the list of requests', async (t) => {
    t.match(simulator.requests.at(0), { method: 'GET', url: '/', status: 404 })
  })
})

t.test('faults', async (t) => {
  const { ask, simulator } = await setUp(t)
  const control = (method: string, path: string, body: unknown = {}) => ask(method, `/_sim/${path}`, body)
  t.test('answer with a status as often as they were told to', async (t) => {
    simulator.faults.add({
      match: { verb: 'list', resource: 'nodes' },
      effect: { kind: 'status', status: 429, retryAfterSeconds: 2 },
      times: 2,
    })
    t.match(await ask('GET', '/api/v1/services'), { status: 200 })
    t.match(
      [await ask('GET', NODES), await ask('GET', NODES), await ask('GET', NODES)],
      [{ status: 429 }, { status: 429 }, { status: 200 }],
    )
  })
  t.test('cut the connection before or after the effect', async (t) => {
    for (const afterEffect of [false, true]) {
      simulator.faults.add({ match: { method: 'POST' }, effect: { kind: 'drop', afterEffect }, times: 1 })
      await t.rejects(ask('POST', NODES, node(`drop-${afterEffect}`)))
      t.equal(simulator.get('nodes', `drop-${afterEffect}`) !== undefined, afterEffect)
    }
  })
  t.test('hang, delay, say 410 or something that is not JSON', async (t) => {
    simulator.faults.add({ match: { url: 'hang' }, effect: { kind: 'hang' } })
    const controller = new AbortController()
    const hanging = watch(simulator, `${NODES}/hang`, controller.signal)
    t.match(await ask('GET', NODES), { status: 200 })
    controller.abort()
    await t.rejects(hanging)
    simulator.faults.add({ effect: { kind: 'delay', ms: 1 }, times: 1 })
    t.match(await ask('GET', NODES), { status: 200 })
    simulator.faults.add({ effect: { kind: 'gone' }, times: 1 })
    t.match(await ask('GET', NODES), { status: 410 })
    simulator.faults.add({ effect: { kind: 'body', status: 502, contentType: 'text/html', body: '<html>' }, times: 1 })
    t.match(await ask('GET', NODES), { status: 502, body: { text: '<html>' } })
    simulator.faults.clear()
  })
  t.test('and the rest can be had over HTTP', async (t) => {
    t.match(await control('POST', 'faults', { effect: { kind: 'status', status: 500 } }), { status: 200 })
    t.match(await ask('GET', NODES), { status: 500 })
    await control('DELETE', 'faults')
    t.match(await ask('GET', NODES), { status: 200 })
    const page = (await ask('GET', `${NODES}?limit=1`)).body.metadata.continue
    await control('POST', 'continue/expire')
    t.match(await ask('GET', `${NODES}?continue=${page}`), { status: 410 })
    for (const act of ['drop', 'finish']) {
      const events = await watch(simulator, `${NODES}?watch=true&resourceVersion=${simulator.store.version}`)
      await control('POST', `watches/${act}`, { plural: 'nodes' })
      t.equal(await events.next().catch(() => undefined), undefined)
    }
    t.match(await control('POST', 'watches/freeze'), { status: 200 })
    t.match(await control('POST', 'history/compact'), { status: 200 })
    t.match(await ask('GET', '/_sim/state'), { body: { watches: 0 } })
    t.match(await ask('GET', '/_sim/requests'), { status: 200 })
    t.match(await ask('GET', '/_sim/odd'), { status: 404 })
  })
})

t.test('closing ends open watches', async (t) => {
  const simulator = await startKubernetesSimulator()
  const events = await watch(simulator, `${NODES}?watch=true&resourceVersion=${simulator.store.version}`)
  await simulator.close()
  await t.rejects(events.next())
  t.equal(simulator.watches.count, 0)
})
