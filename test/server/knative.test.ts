import { randomUUID } from 'node:crypto'
import t from 'tap'
import { transient } from '../../src/errors.ts'
import { knativePath } from '../../src/events/knative.ts'
import { fingerprint, projectNode } from '../../src/events/projection.ts'
import { EPOCH_HEADER } from '../../src/events/types.ts'
import {
  knativeServer,
  kubeNode,
  kubeService,
  nodeReference,
  post,
  type Sent,
  serviceReference,
} from './knative-source.ts'

const [TOKEN, NEXT, OTHER] = [
  'token-of-the-default-cluster',
  'next-token-of-the-default-one',
  'token-of-the-other-cluster',
]
const { h, url } = await knativeServer(t, { default: { tokens: [TOKEN, NEXT] }, other: { tokens: [OTHER] } })

let objects = 0
let versions = 100
const fresh = () => `o${++objects}`
const version = () => ++versions
const keysOf = (triggers: { key: string }[]) => triggers.map(({ key }) => key).sort()
const send = (type: Parameters<typeof post>[1], data: unknown, more: Sent = {}) =>
  post(url, type, data, { token: TOKEN, ...more })
/** Sends, and says what it led to. */
async function asked(...args: Parameters<typeof send>) {
  h.triggers()
  const answer = await send(...args)
  if (answer.status !== 202) throw new Error(`answered ${answer.status}: ${await answer.text()}`)
  return h.triggers()
}

for (const mode of ['binary', 'structured'] as const)
  t.test(`a Node in ${mode} mode is to Windlass what the forwarder makes of it`, async (t) => {
    const name = fresh()
    const node = kubeNode(name, version())
    const id = randomUUID()
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    h.triggers()
    const answer = await send('add', node, { mode, attributes: { id }, headers: { traceparent } })
    t.equal(answer.status, 202)
    t.equal(await answer.text(), '', 'a Broker would take a body for an event in reply')
    t.equal(answer.headers.get(EPOCH_HEADER), (await h.stores.epochs.current()).id)
    const triggers = h.triggers()
    t.same(keysOf(triggers), ['Cluster/routes', 'Cluster/targets', `Node/${name}`])
    t.match(
      triggers.find(({ key }) => key === `Node/${name}`),
      {
        kind: 'node',
        urgency: 'user',
        uid: `uid-${name}`,
        eventId: id,
        traceparent: /^00-a{32}/,
      },
    )
    t.ok((await h.jobs()).has(`Node/${name}`), 'and Redis holds it')
    const known = await h.stores.nodes.get('default', name)
    t.same(known.node, JSON.parse(JSON.stringify(projectNode(node))))
    t.match(
      h.logged.find(({ msg, eventId }) => msg === 'an object changed' && eventId === id),
      { subject: `Node/${name}`, verdict: 'changed', traceId: 'a'.repeat(32), jobId: /./ },
    )
  })

t.test('the trace goes on from the event, else from the request, else it begins', async (t) => {
  const trace = async (more: Sent) => (await asked('add', kubeService(fresh(), version()), more))[0]?.traceparent
  const of = (digit: string) => `00-${digit.repeat(32)}-${'b'.repeat(16)}-01`
  t.equal(await trace({ attributes: { traceparent: of('1') }, headers: { traceparent: of('2') } }), of('1'))
  t.equal(await trace({ attributes: { traceparent: 'garbage' }, headers: { traceparent: of('2') } }), of('2'))
  t.match(await trace({}), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
})

t.test('a Service that wants a load balancer costs a job, another costs nothing', async (t) => {
  const name = fresh()
  t.match(await asked('add', kubeService(name, version())), [{ kind: 'service', key: `Service/default/${name}` }])
  t.same(await asked('add', kubeService(fresh(), version(), { type: 'ClusterIP' })), [])
  t.same(await asked('add', kubeService(fresh(), version(), { loadBalancerClass: 'metallb' })), [])
  t.equal((await asked('add', kubeService(fresh(), version(), { loadBalancerClass: 'example.com/ours' }))).length, 1)
})

t.test('a heartbeat of a kubelet, and the echo of our own last run, cost nothing', async (t) => {
  const name = fresh()
  const node = kubeNode(name, version())
  await asked('add', node)
  const subject = `Node/${name}` as const
  const token = await h.stores.handled.begin('default', subject)
  t.ok(await h.stores.handled.record('default', subject, token, fingerprint(projectNode(node))))
  t.same(await asked('update', { ...kubeNode(name, version()) }), [])
  const another = { ...kubeNode(name, version()), spec: { providerID: 'hcloud://2' } }
  t.same(keysOf(await asked('update', another)), ['Cluster/routes', 'Cluster/targets', subject])
})

t.test('an older state does not take the place of a newer one, and does nothing', async (t) => {
  const name = fresh()
  const [older, newer] = [version(), version()]
  await asked('update', kubeNode(name, newer, { which: 'newer' }))
  t.same(await asked('update', kubeNode(name, older, { which: 'older' })), [])
  t.equal((await h.stores.nodes.get('default', name)).node?.labels.which, 'newer')
})

t.test('a Node that goes leaves a tombstone, so that no late event raises it', async (t) => {
  const name = fresh()
  const [before, late] = [version(), version()]
  await asked('add', kubeNode(name, before))
  t.same(keysOf(await asked('delete', kubeNode(name, version()))), [
    'Cluster/routes',
    'Cluster/targets',
    `Node/${name}`,
  ])
  t.same(await asked('update', kubeNode(name, late)), [])
  t.equal((await h.stores.nodes.get('default', name)).node, undefined)
  t.equal((await asked('add', { ...kubeNode(name, version()) })).length, 3, 'a new one of the name is welcome')
})

t.test('a Service that goes is told with its uid, also when it is the first that is heard of it', async (t) => {
  const [known, unknown] = [fresh(), fresh()]
  await asked('add', kubeService(known, version()))
  for (const name of [known, unknown])
    t.match(await asked('delete', kubeService(name, version())), [
      { kind: 'service', key: `Service/default/${name}`, uid: `uid-${name}`, urgency: 'user' },
    ])
  t.same(await asked('delete', kubeService(fresh(), version(), { type: 'ClusterIP' })), [])
})

t.test('a reference asks for the work on its object, and of a Node for what depends on it', async (t) => {
  const name = fresh()
  t.match(await asked('refAdd', serviceReference(name)), [
    { kind: 'service', key: `Service/default/${name}`, cause: 'dev.knative.apiserver.ref.add', urgency: 'user' },
  ])
  t.equal((await asked('refDelete', serviceReference(name))).length, 1)
  const joined = await asked('refAdd', nodeReference(name))
  t.same(keysOf(joined), ['Cluster/routes', 'Cluster/targets', `Node/${name}`])
  t.match(
    joined.find(({ kind }) => kind === 'targets'),
    { delayMs: 200 },
  )
  const reported = await asked('refUpdate', nodeReference(name), { mode: 'structured' })
  t.match(
    reported.find(({ kind }) => kind === 'targets'),
    { delayMs: 5000 },
    'kubelets report all the time',
  )
  t.ok((await h.jobs()).has(`Node/${name}`))
  t.equal((await h.stores.nodes.get('default', name)).node, undefined, 'it says nothing of the state')
  t.match(h.logged.filter(({ subject }) => subject === `Node/${name}`).at(-1), {
    verdict: 'asked',
    jobId: /./,
    traceId: /./,
  })
})

t.test('a cluster without pod routes is not bothered with them', async (t) => {
  const to = { cluster: 'other', token: OTHER }
  for (const [type, data] of [
    ['add', kubeNode('n', 1)],
    ['refUpdate', nodeReference('n')],
    ['delete', kubeNode('n', 2)],
  ] as const)
    t.same(keysOf(await asked(type, data, to)), ['Cluster/targets', 'Node/n'])
})

t.test('an event that comes twice does nothing the second time', async (t) => {
  for (const [type, data] of [
    ['add', kubeNode(fresh(), version())],
    ['delete', kubeService(fresh(), version())],
    ['refUpdate', nodeReference(fresh())],
  ] as const) {
    const attributes = { id: randomUUID() }
    t.not((await asked(type, data, { attributes })).length, 0)
    t.same(await asked(type, data, { attributes, mode: 'structured' }), [])
    t.not(
      (await asked(type, data, { attributes: { ...attributes, source: 'https://other' } })).length,
      0,
      'another source',
    )
  }
})

t.test('since nothing tells what got lost, the nodes never count as complete', async (t) => {
  const complete = async () => {
    await h.stores.nodes.beginSnapshot('default', 's')
    const { id: epoch } = await h.stores.epochs.current()
    await h.stores.nodes.endSnapshot('default', 's', { items: 0, listVersion: '1', epoch })
    return (await h.stores.nodes.all('default')).complete
  }
  for (const [type, data] of [
    ['add', kubeNode(fresh(), version())],
    ['delete', kubeNode(fresh(), version())],
    ['refUpdate', nodeReference(fresh())],
  ] as const) {
    t.equal(await complete(), true)
    await asked(type, data)
    t.equal((await h.stores.nodes.all('default')).complete, false, type)
  }
  t.equal(await complete(), true)
  await asked('add', kubeService(fresh(), version()))
  t.equal((await h.stores.nodes.all('default')).complete, true, 'a Service says nothing about them')
})

t.test('any of the tokens of a cluster will do, and none of another', async (t) => {
  const status = async (token: string | undefined, cluster: string) =>
    (await send('refAdd', serviceReference('x'), { token, cluster })).status
  t.equal(await status(TOKEN, 'default'), 202)
  t.equal(await status(NEXT, 'default'), 202)
  t.equal(await status(OTHER, 'other'), 202)
  t.equal(await status(OTHER, 'default'), 401)
  t.equal(await status(TOKEN, 'other'), 401)
  t.equal(await status(`${TOKEN}x`, 'default'), 401)
  t.equal(await status(TOKEN.slice(1), 'default'), 401)
  t.equal(await status(`${TOKEN},${NEXT}`, 'default'), 401)
  t.equal(await status('a.b.c', 'default'), 401)
})

t.test('what is no bearer token is answered with how it would be right', async (t) => {
  for (const authorization of ['', TOKEN, `Basic ${TOKEN}`, 'Bearer', `Bearer ${TOKEN} ${TOKEN}`]) {
    const answer = await send('refAdd', serviceReference('x'), { token: undefined, headers: { authorization } })
    t.equal(answer.status, 401, authorization)
    t.match(answer.headers.get('www-authenticate'), /^Bearer/)
    t.match(await answer.json(), { message: /bearer token is needed: one of the tokens that the server has/ })
  }
  t.equal((await send('refAdd', serviceReference('x'), { headers: { authorization: `bearer ${TOKEN}` } })).status, 202)
})

const refused: [what: string, status: number, message: RegExp, ask: () => Promise<Response>][] = [
  ['a cluster that is not known', 404, /no cluster of this name/, () => send('add', {}, { cluster: 'nobody' })],
  [
    'a cluster that takes none',
    404,
    /WINDLASS_KNATIVE_OIDC_ISSUER or WINDLASS_KNATIVE_TOKENS/,
    () => send('add', {}, { cluster: 'off' }),
  ],
  [
    'a batch',
    415,
    /application\/json with headers ce-…, or application\/cloudevents\+json/,
    () => send('add', {}, { headers: { 'content-type': 'application/cloudevents-batch+json' } }),
  ],
  ['no content type', 415, /content type must be/, () => send('add', {}, { headers: { 'content-type': '' } })],
  ['too much', 413, /1048576 bytes/, () => send('add', { x: 'x'.repeat(1024 * 1024) })],
  [
    'too much of somebody who may not send',
    401,
    /bearer token/,
    () => send('add', { x: 'x'.repeat(1024 * 1024) }, { token: 'x' }),
  ],
]
for (const [what, status, message, ask] of refused)
  t.test(`${what} is answered ${status}`, async (t) => {
    const answer = await ask()
    t.equal(answer.status, status)
    t.match(await answer.json(), { message })
    t.equal(answer.headers.get(EPOCH_HEADER), null)
  })

t.test(
  'what nobody has a use for is answered by its path, with a status after which Knative does not try again',
  async (t) => {
    h.triggers()
    const answer = await send('add', { ...kubeService('web', 1), apiVersion: 'serving.knative.dev/v1' })
    t.equal(answer.status, 400)
    t.match(await answer.json(), { faults: [{ path: '$.data.apiVersion', message: /no other resources/ }] })
    t.equal((await send('add', kubeNode('w', 1), { attributes: { type: 'dev.knative.sources.ping' } })).status, 400)
    for (const mode of ['binary', 'structured'] as const) {
      const garbage = await fetch(`${url}${knativePath('default')}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'content-type': mode === 'binary' ? 'application/json' : 'application/cloudevents+json',
        },
        body: '{',
      })
      t.equal(garbage.status, 400)
      t.match(await garbage.json(), { faults: [{ path: mode === 'binary' ? '$.data' : '$' }] })
    }
    t.same(h.triggers(), [])
  },
)

t.test('answers are counted, and the API describes itself', async (t) => {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  for (const status of [202, 400, 401, 413, 415])
    t.match(metrics, new RegExp(`windlass_knative_events_total\\{cluster="default",status="${status}"\\} [1-9]`))
  const api = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, { post: object }> }
  t.match(api.paths['/v1/clusters/{cluster}/knative']?.post, {
    security: [{ bearer: [] }],
    requestBody: { content: { 'application/json': {}, 'application/cloudevents+json': {} } },
    responses: { 202: {}, 400: {}, 401: {}, 404: {}, 413: {}, 415: {}, 503: {} },
  })
})

t.test('no log line has a token', async (t) => {
  t.ok(h.logged.some(({ msg }) => msg === 'an event of Knative was refused'))
  const all = JSON.stringify(h.logged)
  for (const token of [TOKEN, NEXT, OTHER]) t.notMatch(all, token)
})

t.test('while the queue does not take it, an event is refused, and coming again it does its work', async (t) => {
  const { enqueue } = h.deps.enqueuer
  for (const [type, data, keys] of [
    ['delete', kubeService(fresh(), version()), 1],
    ['refAdd', nodeReference(fresh()), 3],
    ['add', kubeNode(fresh(), version()), 3],
  ] as const) {
    const attributes = { id: randomUUID() }
    h.deps.enqueuer.enqueue = async () => {
      throw transient('the queue does not take it')
    }
    const answer = await send(type, data, { attributes })
    t.equal(answer.status, 503)
    t.match(answer.headers.get('retry-after'), /^[1-9]/)
    h.deps.enqueuer.enqueue = enqueue
    t.equal((await asked(type, data, { attributes })).length, keys, type)
  }
})

t.test('while Redis is gone, events are refused, and taken when it is back', async (t) => {
  await h.fixture.kill9()
  const answer = await send('refAdd', serviceReference('after'))
  t.equal(answer.status, 503)
  t.match(answer.headers.get('retry-after'), /^[1-9]/)
  t.match(await answer.json(), { message: /Redis/ })
  await h.fixture.restart()
  for (let tries = 0; tries < 100; tries++) {
    if ((await send('refAdd', serviceReference('after'))).status === 202) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.ok((await h.jobs()).has('Service/default/after'))
})
