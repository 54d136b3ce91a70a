import t from 'tap'
import { aborted } from '../../src/errors.ts'
import { custom, EVENTS, LEASES, NODES, SECRETS, SERVICES } from '../../src/kubernetes/resources.ts'
import { aCall, failure, setUp } from './setting.ts'

const service = (name: string) => ({ metadata: { name }, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } })

t.test('get answers the object, or undefined when there is none', async (t) => {
  const { api, call, simulator, seen } = await setUp(t)
  simulator.create('nodes', { metadata: { name: 'a' } })
  t.match(await api.get(NODES, { name: 'a' }, call), { metadata: { name: 'a' } })
  t.equal(await api.get(NODES, { name: 'b' }, call), undefined)
  t.equal(
    await api.get(custom('example.com', 'v1', 'Odd', 'odds', true), { namespace: 'default', name: 'a' }, call),
    undefined,
  )
  t.match(seen, [{ verb: 'get', resource: 'nodes', status: 200, ms: Number }, { status: 404 }, { resource: 'odds' }])
  t.same(call.writes, [])
})

t.test('list', async (t) => {
  const { api, call, simulator, seen } = await setUp(t)
  for (const name of ['a', 'b', 'c', 'd', 'e']) simulator.create('nodes', { metadata: { name, labels: { name } } })
  const names = (list: { items: { metadata: { name: string } }[] }) => list.items.map(({ metadata }) => metadata.name)

  t.test('follows all pages and answers the version of the whole', async (t) => {
    const list = await api.list(NODES, { pageSize: 2 }, call)
    t.same(names(list), ['a', 'b', 'c', 'd', 'e'])
    t.equal(list.resourceVersion, String(simulator.store.version))
    t.equal(seen.length, 3)
  })
  t.test('keeps only the projection', async (t) => {
    const { items } = await api.list(NODES, { project: ({ metadata }) => metadata.name }, call)
    t.same(items, ['a', 'b', 'c', 'd', 'e'])
  })
  t.test('selects by label, field and namespace', async (t) => {
    t.same(names(await api.list(NODES, { labelSelector: 'name in (b,c)' }, call)), ['b', 'c'])
    t.same(names(await api.list(NODES, { fieldSelector: 'metadata.name=d' }, call)), ['d'])
    simulator.create('services', service('web'))
    t.same(names(await api.list(SERVICES, { namespace: 'default' }, call)), ['web'])
    t.same(names(await api.list(SERVICES, { namespace: 'kube-system' }, call)), [])
  })
  t.test('begins again when its continuation has expired', async (t) => {
    simulator.faults.add({ match: { url: 'continue=' }, effect: { kind: 'gone' }, times: 2 })
    t.same(names(await api.list(NODES, { pageSize: 3 }, call)), ['a', 'b', 'c', 'd', 'e'])
  })
  t.test('is an error, never a part, when that goes on or a page fails', async (t) => {
    simulator.faults.add({ match: { url: 'continue=' }, effect: { kind: 'gone' } })
    t.match(await failure(api.list(NODES, { pageSize: 3 }, call)), { kind: 'transient', code: 'Expired' })
    simulator.faults.clear()
    simulator.faults.add({ match: { url: 'continue=' }, effect: { kind: 'status', status: 500 } })
    t.match(await failure(api.list(NODES, { pageSize: 3 }, call)), { kind: 'transient', status: 500 })
    simulator.faults.clear()
  })
})

t.test('every write asks first, and is not sent when the answer is no', async (t) => {
  const { api, call, simulator } = await setUp(t)
  await api.create(SERVICES, { ...service('web'), metadata: { name: 'web', namespace: 'default' } }, call)
  const name = { namespace: 'default', name: 'web' }
  await api.patch(SERVICES, name, { type: 'merge', subresource: 'status', body: {} }, call)
  await api.delete(SERVICES, name, call)
  t.same(call.writes, ['create Service default/web', 'patch Service default/web status', 'delete Service default/web'])

  const before = simulator.requests.length
  const lost = { ...aCall(), beforeWrite: () => Promise.reject(aborted('the claim is lost')) }
  t.match(await failure(api.create(NODES, { metadata: { name: 'a' } }, lost)), { kind: 'aborted' })
  t.match(await failure(api.patch(NODES, { name: 'a' }, { type: 'merge', body: {} }, lost)), { kind: 'aborted' })
  t.match(await failure(api.delete(NODES, { name: 'a' }, lost)), { kind: 'aborted' })
  t.equal(simulator.requests.length, before)
})

t.test('create', async (t) => {
  const { api, call } = await setUp(t)
  t.match(await api.create(NODES, { metadata: { name: 'a' } }, call), { kind: 'Node', metadata: { uid: String } })
  t.match(await failure(api.create(NODES, { metadata: { name: 'a' } }, call)), {
    kind: 'transient',
    code: 'AlreadyExists',
    message: 'Node a exists already',
  })
  await api.create(NODES, { metadata: { name: 'dry' } }, call, { dryRun: true })
  t.equal(await api.get(NODES, { name: 'dry' }, call), undefined)
})

t.test('patch sends each form under its own content type', async (t) => {
  const { api, call, simulator } = await setUp(t)
  simulator.create('nodes', { metadata: { name: 'a', labels: { a: '1' } } })
  const name = { name: 'a' }
  const forms = [
    { type: 'merge', body: { metadata: { labels: { b: '2' } } } },
    { type: 'strategic', body: { metadata: { labels: { c: '3' } } } },
    { type: 'json', body: [{ op: 'remove', path: '/metadata/labels/a' }] },
    { type: 'apply', body: { metadata: { labels: { d: '4' } } } },
  ] as const
  for (const form of forms) await api.patch(NODES, name, form, call)
  t.same(simulator.get('nodes', 'a')?.metadata.labels, { b: '2', c: '3', d: '4' })
  t.match(
    simulator.requests.map(({ contentType }) => contentType),
    [
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
      'application/json-patch+json',
      'application/apply-patch+yaml',
    ],
  )
  t.ok(simulator.requests.every(({ url }) => url.includes('fieldManager=windlass')))

  t.test('and answers undefined when the object is gone', async (t) => {
    t.equal(await api.patch(NODES, { name: 'none' }, { type: 'merge', body: {} }, call), undefined)
  })
  t.test('but apply makes it', async (t) => {
    t.match(await api.patch(NODES, { name: 'new' }, { type: 'apply', body: {} }, call), { metadata: { name: 'new' } })
  })
  t.test('and stores nothing on a dry run', async (t) => {
    await api.patch(NODES, name, { type: 'merge', body: { metadata: { labels: { x: '1' } } } }, call, { dryRun: true })
    t.notMatch(simulator.get('nodes', 'a'), { metadata: { labels: { x: '1' } } })
  })
})

t.test('delete obeys preconditions and says when there was nothing to delete', async (t) => {
  const { api, call, simulator } = await setUp(t)
  const { metadata } = simulator.create('nodes', { metadata: { name: 'a' } })
  const name = { name: 'a' }
  t.match(await failure(api.delete(NODES, name, call, { preconditions: { uid: 'other' } })), {
    kind: 'transient',
    code: 'Conflict',
  })
  t.match(await failure(api.delete(NODES, name, call, { preconditions: { resourceVersion: '1' } })), {
    code: 'Conflict',
  })
  t.equal(await api.delete(NODES, name, call, { dryRun: true }), 'deleted')
  t.equal(await api.delete(NODES, name, call, { preconditions: { uid: String(metadata.uid) } }), 'deleted')
  t.equal(await api.delete(NODES, name, call), 'absent')
})

t.test('refusals become errors of a kind', async (t) => {
  const { api, call, simulator } = await setUp(t, {
    rules: [{ verbs: ['get', 'patch'], resources: ['nodes', 'services'] }],
  })
  simulator.create('nodes', { metadata: { name: 'a' }, spec: { providerID: 'x://1' } })
  simulator.create('services', service('web'))
  const patch = (body: object) => api.patch(NODES, { name: 'a' }, { type: 'merge', body }, call)
  t.match(await failure(patch({ metadata: { resourceVersion: '1', labels: { a: 'b' } } })), {
    kind: 'transient',
    code: 'Conflict',
  })
  t.match(await failure(patch({ metadata: { uid: 'other' } })), { kind: 'transient', code: 'Conflict' })
  t.match(await failure(patch({ spec: { providerID: 'x://2' } })), {
    kind: 'permanent',
    status: 422,
    message: /Node a: .*providerID/,
  })
  const test = [{ op: 'test', path: '/metadata/uid', value: 'other' }]
  t.match(await failure(api.patch(NODES, { name: 'a' }, { type: 'json', body: test }, call)), {
    kind: 'transient',
    code: 'Conflict',
  })
  const remove = [{ op: 'remove', path: '/spec/none' }]
  t.match(await failure(api.patch(NODES, { name: 'a' }, { type: 'json', body: remove }, call)), { kind: 'permanent' })
  t.match(await failure(api.get(SECRETS, { namespace: 'default', name: 's' }, call)), {
    kind: 'transient',
    code: 'Forbidden',
    message: /grant the verb "get" on "secrets"/,
  })
  t.match(
    await failure(
      api.patch(
        SERVICES,
        { namespace: 'default', name: 'web' },
        { type: 'merge', subresource: 'status', body: {} },
        call,
      ),
    ),
    { code: 'Forbidden', message: /"patch" on "services\/status"/ },
  )
  simulator.change('services', 'web', ({ metadata }) => {
    metadata.finalizers = ['x/y']
  })
  simulator.delete('services', 'web')
  t.match(
    await failure(
      api.patch(
        SERVICES,
        { namespace: 'default', name: 'web' },
        { type: 'strategic', body: { metadata: { finalizers: ['a/b'] } } },
        call,
      ),
    ),
    { kind: 'transient', code: 'Deleting' },
  )

  const get = () => failure(api.get(NODES, { name: 'a' }, call))
  const once = (effect: Parameters<typeof simulator.faults.add>[0]['effect']) =>
    simulator.faults.add({ effect, times: 1 })
  const inTwoSeconds = Date.now() + 1900
  once({ kind: 'status', status: 429, retryAfterSeconds: 2 })
  const slow = await get()
  t.equal(slow?.kind, 'throttled')
  t.ok((slow?.retryAtMs ?? 0) >= inTwoSeconds)
  once({ kind: 'status', status: 503, retryAfterSeconds: 1 })
  t.match(await get(), { kind: 'throttled', status: 503 })
  once({ kind: 'status', status: 503 })
  t.match(await get(), { kind: 'transient', status: 503 })
  once({ kind: 'status', status: 400 })
  t.match(await get(), { kind: 'permanent' })
  once({ kind: 'body', status: 502, contentType: 'text/html', body: '<h1>Bad\nGateway</h1>' })
  t.match(await get(), { kind: 'transient', message: /502.*<h1>Bad Gateway<\/h1>/ })
  once({ kind: 'body', status: 200, contentType: 'text/html', body: '<h1>' })
  t.match(await get(), { kind: 'transient', message: /something other than JSON/ })
  // The first try is on a kept connection, which the server may close at any time: it is sent once more.
  simulator.faults.add({ effect: { kind: 'drop' }, times: 2 })
  t.match(await get(), { kind: 'transient', message: /Kubernetes could not be asked to get Node a/ })
  simulator.access.revoke('simulator-token-of-windlass')
  t.match(await get(), { kind: 'transient', code: 'Unauthorized', message: /token or client certificate/ })
})

t.test('a call that is stopped aborts', async (t) => {
  const { api, simulator, seen } = await setUp(t)
  simulator.faults.add({ effect: { kind: 'hang' } })
  const controller = new AbortController()
  const asked = api.get(NODES, { name: 'a' }, { ...aCall(), signal: controller.signal })
  controller.abort()
  t.match(await failure(asked), { kind: 'aborted' })
  t.match(seen, [{ status: 0 }])
})

t.test('leases and events have their own paths', async (t) => {
  const { api, call, simulator } = await setUp(t)
  await api.create(LEASES, { metadata: { name: 'l', namespace: 'kube-system' }, spec: { holderIdentity: 'me' } }, call)
  t.match(await api.get(LEASES, { namespace: 'kube-system', name: 'l' }, call), { spec: { holderIdentity: 'me' } })
  t.same((await api.list(EVENTS, {}, call)).items, [])
  t.ok(
    simulator.requests.some(({ url }) => url.startsWith('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases')),
  )
})
