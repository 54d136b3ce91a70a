import t, { type Test } from 'tap'
import type { PlanDocument } from '../../src/cli/plan/types.ts'
import { type ApiServer, type CherryWorld, FIP, REGION, startCherryWorld, startControlPlane } from './cherry-world.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'
const ADDRESS = 'Cluster/control-plane-address'

/** A world with plans of it, each of which is looked at for writes. */
const planning = (t: Test, world: CherryWorld) => {
  const plan = async (...argv: string[]) => {
    const done = await world.run('plan', argv)
    t.same(world.writes(), [], 'nothing was written')
    return done
  }
  return {
    ...world,
    plan,
    async item(subject: string) {
      const { code, output } = await plan('--json', subject)
      const [item] = (JSON.parse(output) as PlanDocument).clusters.flatMap(({ items }) => items)
      return { ...item, code, lines: item?.changes.map(({ at, summary }) => `${at}: ${summary}`) }
    },
  }
}

const world = async (t: Test, env: Record<string, string> = {}, more: { metallb?: boolean } = {}) =>
  planning(t, await startCherryWorld(t, { env, ...more }))

async function controlPlane(
  t: Test,
  apiservers: ApiServer[],
  options: { at?: number; env?: Record<string, string> } = {},
) {
  const { port, ...rest } = await startControlPlane(t, apiservers, options)
  return { ...planning(t, rest), port }
}

t.jobs = 2

const RESERVATION = [
  `kubernetes: add finalizer ${FINALIZER}`,
  `cloud: reserve a floating IP in region ${REGION}`,
  'cloud: switch BGP on for the project',
  'cloud: switch BGP on for the server of node w1',
  'kubernetes: annotate node w1 with its BGP peers',
]
const POOL = [
  'kubernetes: create address pool default.web with (the new floating IP)/32',
  'kubernetes: advertise pool default.web',
]

/** What a new Service takes, by how its address is announced. */
const ANNOUNCED: [balancer: string, annotation: string, lines: string[]][] = [
  [
    'metallb:///',
    'metallb.io/loadBalancerIPs',
    [
      ...POOL,
      'kubernetes: create BGP peer w1-0 to 188.214.132.44',
      'kubernetes: create BGP peer w1-1 to 188.214.132.43',
    ],
  ],
  [
    'metallb:///?bgp-peer-mode=frr',
    'metallb.io/loadBalancerIPs',
    [
      ...POOL,
      'kubernetes: create BGP peer lt-siauliai-0 to 188.214.132.44',
      'kubernetes: create BGP peer lt-siauliai-1 to 188.214.132.43',
    ],
  ],
  ['metallb:///?bgp-peer-mode=none', 'metallb.io/loadBalancerIPs', POOL],
  ['kube-vip://', 'kube-vip.io/loadbalancerIPs', []],
  ['empty://?ip-annotation=example.org/ip', 'example.org/ip', []],
]

for (const [balancer, annotation, lines] of ANNOUNCED)
  t.test(`a new Service, announced by ${balancer}`, async (t) => {
    const { item, addNode, addService } = await world(t, { CHERRY_LOAD_BALANCER: balancer })
    await addNode('w1', 1)
    const { uid } = addService('web').metadata
    // No later setting tells which annotation an admin had chosen.
    const chosen = balancer.endsWith(annotation) ? ` ${annotation}` : ''
    const { code, lines: planned, faults } = await item('Service/default/web')
    t.same([code, faults], [2, []])
    t.same(planned, [
      ...RESERVATION,
      ...lines,
      `kubernetes: annotate it with ${annotation}=(the new floating IP), windlass.dev/cherry-address=${uid} (the new floating IP)${chosen}`,
      'kubernetes: list the addresses of the load balancer in its status',
    ])
  })

t.test('an address that the user brings along is neither reserved nor noted', async (t) => {
  const { item, addNode, addService } = await world(t, { CHERRY_LOAD_BALANCER: 'metallb:///' })
  await addNode('w1', 1)
  addService('web', { 'metallb.io/loadBalancerIPs': '203.0.113.7' })
  const { lines } = await item('Service/default/web')
  t.notOk(lines?.some((line) => /reserve|annotate it/.test(line)))
  t.ok(lines?.includes('kubernetes: create address pool default.web with 203.0.113.7/32'))
})

t.test('nodes outside of the selector lose their annotations, and get no BGP', async (t) => {
  const env = { CHERRY_LOAD_BALANCER: 'kube-vip://', CHERRY_BGP_NODE_SELECTOR: 'bgp=yes' }
  const { item, addNode, addService, kubernetes } = await world(t, env)
  await addNode('w1', 1, {}, { bgp: 'yes' })
  await addNode('w2', 2)
  kubernetes.change('nodes', 'w2', (node) => {
    node.metadata.annotations = { 'cherryservers.com/bgp-peers-0-peer-ip': '188.214.132.44' }
  })
  addService('web')
  const { lines } = await item('Service/default/web')
  t.same(
    lines?.filter((line) => /node w/.test(line)),
    [
      'cloud: switch BGP on for the server of node w1',
      'kubernetes: annotate node w1 with its BGP peers',
      'kubernetes: take the BGP annotations off node w2',
    ],
  )
})

t.test('a Service that goes: cluster first, then the address', async (t) => {
  const { item, cherry, kubernetes, addService, clusterUid } = await world(t, { CHERRY_LOAD_BALANCER: 'metallb:///' })
  addService('web', { 'metallb.io/loadBalancerIPs': '5.199.171.9' }, { finalizers: [FINALIZER] })
  await cherry.control.mutate({
    ips: [
      {
        create: {
          address: '5.199.171.9',
          tags: {
            usage: 'cloud-provider-cherry-auto',
            service: 'grOt6dAM0WQqTUIOZw1s2Y60hJou4P9m1mieZFyOsz8=',
            cluster: clusterUid(),
          },
        },
      },
    ],
  })
  kubernetes.create('namespaces', { metadata: { name: 'metallb-system' } })
  kubernetes.create('ipaddresspools', {
    metadata: {
      name: 'default.web',
      namespace: 'metallb-system',
      labels: { 'cloud-provider': 'equinix-metal', 'service-web': 'namespace-default' },
    },
    spec: { addresses: ['5.199.171.9/32'], autoAssign: false },
  })
  kubernetes.change('services', 'web', (service) => {
    ;(service.spec as Record<string, unknown>).type = 'ClusterIP'
  })
  const { code, lines } = await item('Service/default/web')
  t.equal(code, 2)
  t.same(lines, [
    'kubernetes: delete address pool default.web',
    'cloud: release floating IP 5.199.171.9',
    'kubernetes: take off its annotations metallb.io/loadBalancerIPs',
    `kubernetes: remove finalizer ${FINALIZER}`,
  ])
})

t.test('without MetalLB, and without a region, it says what to do', async (t) => {
  const bare = await world(t, { CHERRY_LOAD_BALANCER: 'metallb:///' }, { metallb: false })
  bare.addService('web')
  const { code, faults } = await bare.item('Service/default/web')
  t.equal(code, 1)
  t.match(faults, [/^Service default\/web can't be announced: the cluster has no MetalLB .* Install it/])

  const nowhere = await world(t, { CHERRY_LOAD_BALANCER: 'kube-vip://', CHERRY_REGION_NAME: '' })
  nowhere.addService('web')
  nowhere.addService('here', { 'cherryservers.com/fip-region': REGION })
  t.match((await nowhere.item('Service/default/web')).faults, [
    /no region says where to reserve one: set CHERRY_REGION/,
  ])
  t.match((await nowhere.item('Service/default/here')).faults, [])
})

const external = (port: number) => [
  `kubernetes: create Service kube-system/cloud-provider-cherry-kubernetes-external: ${FIP}:${port} leads to port ${port} of the API servers`,
  `kubernetes: list ${FIP} in the status of Service kube-system/cloud-provider-cherry-kubernetes-external`,
  'kubernetes: create EndpointSlice kube-system/cloud-provider-cherry-kubernetes-external: it leads to 10.168.0.1, 10.168.0.2',
]

t.test("the control plane's address stays where an API server answers, and the Service for it is made", async (t) => {
  const { item, port, plan, cherry } = await controlPlane(t, ['ok', 'ok'])
  t.match(await item(ADDRESS), { code: 2, lines: external(port), notes: [], faults: [] })
  t.match((await plan()).output, /Cluster\/control-plane-address\n {2}kubernetes: create Service/)
  t.ok(
    cherry.control.probes().every(({ authorized }) => authorized === false),
    'no credentials went along',
  )
})

t.test('it moves off a machine that fails, is cordoned or has it no more, to one that answers', async (t) => {
  const moves = async (w: Awaited<ReturnType<typeof controlPlane>>) =>
    (await w.item(ADDRESS)).lines?.filter((line) => line.startsWith('cloud'))
  t.same(await moves(await controlPlane(t, ['refuse', 500, 'ok'])), [
    'cloud: assign 127.0.0.60 to the machine of node cp-3: its API server does not answer at 127.0.0.60',
  ])
  t.same(await moves(await controlPlane(t, ['refuse', 'ok'], { at: 0 })), [
    'cloud: assign 127.0.0.60 to the machine of node cp-2: no machine has it',
  ])
  const cordoned = await controlPlane(t, ['ok', 'ok'])
  cordoned.kubernetes.change('nodes', 'cp-1', (node) => {
    ;(node.spec as Record<string, unknown>).unschedulable = true
  })
  t.same(await moves(cordoned), ['cloud: assign 127.0.0.60 to the machine of node cp-2: node cp-1 is cordoned'])
})

t.test('it stays where nobody else answers, and where only the way to it may be broken', async (t) => {
  const stuck = await controlPlane(t, ['refuse', 500])
  t.match(await stuck.item(ADDRESS), {
    lines: external(stuck.port),
    notes: [
      {
        reason: 'ControlPlaneAddressStuck',
        message:
          'Of 127.0.0.60: its API server does not answer at 127.0.0.60, and no other API server of the control plane answers, so it stays where it is',
      },
    ],
  })
  // Port 1 of the address leads to nobody.
  const doubtful = await controlPlane(t, ['ok', 'ok'], { env: { CHERRY_API_SERVER_PORT: '1' } })
  t.match(await doubtful.item(ADDRESS), {
    notes: [{ reason: 'ControlPlaneAddressInDoubt', message: /but machine cp-1 does at its own addresses/ }],
  })
  t.notOk((await doubtful.item(ADDRESS)).lines?.some((line) => line.startsWith('cloud')))
})

t.test('what is missing for it is a fault', async (t) => {
  const untagged = await controlPlane(t, ['ok'], { env: { CHERRY_FIP_TAG: 'role=other' } })
  t.match(await untagged.item(ADDRESS), {
    code: 1,
    faults: ['there is no floating IP with tag role=other in Cherry project 87553'],
  })
  const portless = await controlPlane(t, ['ok'])
  portless.kubernetes.delete('endpointslices', 'kubernetes', 'default')
  portless.kubernetes.change('services', 'kubernetes', (service) => {
    ;(service.spec as Record<string, unknown>).ports = [{ name: 'https', port: 443, targetPort: 'https' }]
  })
  t.match((await portless.item(ADDRESS)).faults, [/at which port the API servers are/])
  const { plan } = await world(t)
  t.notMatch((await plan()).output, ADDRESS, 'no setting, no address')
})
