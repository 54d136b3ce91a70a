import t, { type Test } from 'tap'
import { instanceOf } from '../../src/cloud/cherry/instance.ts'
import * as cherry from '../../src/cloud/cherry/parse.ts'
import { cloudInstance } from '../../src/cloud/hcloud/instance.ts'
import { planLoadBalancer, type Wanted } from '../../src/cloud/hcloud/load-balancers/plan.ts'
import { judge } from '../../src/cloud/hcloud/load-balancers/planner.ts'
import { ingressOf } from '../../src/cloud/hcloud/load-balancers/status.ts'
import type { CloudServerId } from '../../src/cloud/hcloud/model.ts'
import * as hcloud from '../../src/cloud/hcloud/parse.ts'
import { planRoutes } from '../../src/cloud/hcloud/route-plan.ts'
import { WindlassError } from '../../src/errors.ts'
import * as cherryBench from './cherry/bench.ts'
import * as hcloudBench from './hcloud/bench.ts'

/** What a field of a good answer may be one day: gone, nothing, or something that nobody has heard of. */
const ODD = [undefined, null, 'a new word', '', 7, -1, true, [], {}, [null], { id: null }]

/** Every answer that differs from this one in one place, with the path of the place. */
function* odd(answer: unknown, path = '$'): Generator<[string, unknown]> {
  if (typeof answer !== 'object' || answer === null) return
  for (const key of Object.keys(answer)) {
    const put = (value: unknown) => {
      const copy: Record<string, unknown> = Array.isArray(answer) ? ([...answer] as never) : { ...answer }
      if (value === undefined && !Array.isArray(answer)) delete copy[key]
      else copy[key] = value
      return copy
    }
    for (const value of ODD) yield [`${path}.${key} is ${JSON.stringify(value)}`, put(value)]
    const below = (answer as Record<string, unknown>)[key]
    for (const [where, value] of odd(below, `${path}.${key}`)) yield [where, put(value)]
  }
}

/** Each odd answer is read, and what is made of it is made, or it is refused as no answer of that API. */
function survives(t: Test, answer: unknown, use: (json: unknown) => unknown, refusal: new () => Error): number {
  use(answer)
  let tried = 0
  for (const [where, json] of odd(answer)) {
    tried++
    try {
      use(json)
    } catch (error) {
      if (!(error instanceof refusal)) t.fail(`${where}: ${error}`)
    }
  }
  return tried
}

t.test('no field of an answer of Hetzner Cloud can crash a run', async (t) => {
  const network = { id: 500, name: 'net', ip_range: '10.0.0.0/8', subnets: [{ ip_range: '10.0.0.0/24' }] }
  const of = await hcloudBench.bench({
    account: {
      networks: [{ ...network, routes: [{ destination: '10.244.1.0/24', gateway: '10.0.0.11' }] }],
      servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.33'] }] }],
      certificates: [{ id: 701, name: 'cert' }],
    },
    settings: { network: 'net' },
  })
  t.teardown(() => of.close())
  const asked = {
    protocol: 'https',
    'http-certificates': 'cert',
    'health-check-interval': '9s',
    'ipv4-rdns': 'a.example',
  }
  const nodes = hcloudBench.nodes(1).map((node) => ({ ...node, podCidrs: ['10.244.1.0/24'] }))
  await of.ensure(hcloudBench.service(asked), nodes)
  const get = async (path: string) => {
    const headers = { authorization: `Bearer ${hcloudBench.TOKEN}` }
    return (await (await fetch(`${of.simulator.apiUrl}${path}`, { headers })).json()) as Record<string, unknown>
  }
  const wanted: Wanted = {
    uid: hcloudBench.UID,
    defaultName: 'a1',
    rdns: {},
    attachment: { ip: '10.0.0.9' },
    placement: {},
    algorithm: 'least_connections',
    publicInterface: false,
    usePrivateIp: true,
    network: 500,
    type: { id: 2, name: 'lb21', maxTargets: 75, maxServices: 15 },
    listeners: [],
    targets: [{ node: 'w1', target: { type: 'server', server: 1 as CloudServerId, usePrivateIp: true } }],
    targetsOpen: false,
    unusable: new Map(),
  }
  const servers = hcloud.listOf(await get('/servers'), 'servers', hcloud.parseServer)
  const uses: Record<string, [string, (json: unknown) => unknown]> = {
    servers: [
      '/servers',
      (json) =>
        hcloud.listOf(json, 'servers', hcloud.parseServer).map((server) => {
          judge(wanted, [server])
          return cloudInstance(server, hcloudBench.node('w1'), {
            addressFamily: 'dualstack',
            zoneLabelEnabled: true,
            network: 500,
          })
        }),
    ],
    load_balancers: [
      '/load_balancers',
      (json) =>
        hcloud.listOf(json, 'load_balancers', hcloud.parseLoadBalancer).map((lb) => {
          ingressOf(lb, { ipv6: true, privateAddresses: true, ipMode: 'VIP' })
          return planLoadBalancer(wanted, lb)
        }),
    ],
    load_balancer_types: [
      '/load_balancer_types',
      (json) => hcloud.listOf(json, 'load_balancer_types', hcloud.parseLoadBalancerType),
    ],
    networks: [
      '/networks',
      (json) =>
        hcloud
          .listOf(json, 'networks', hcloud.parseNetwork)
          .map((one) => planRoutes(nodes, ['10.244.0.0/16'], one, servers)),
    ],
    certificates: ['/certificates', (json) => hcloud.listOf(json, 'certificates', hcloud.parseCertificate)],
  }
  const error = { code: 'action_failed', message: 'Action failed' }
  const action = { id: 1, command: 'add_target', status: 'error', progress: 100, started: '', resources: [], error }
  const readActions = (json: unknown) => hcloud.listOf(json, 'actions', hcloud.parseAction)
  t.ok(survives(t, { actions: [action] }, readActions, hcloud.MalformedAnswer) > 100, 'actions')
  for (const [name, [path, use]] of Object.entries(uses)) {
    const answer = await get(path)
    const list = answer[name] as unknown[]
    t.ok(list.length > 0, `${name} are there`)
    const few = { ...answer, [name]: list.slice(0, 2) }
    t.ok(survives(t, few, (json) => [use(json), hcloud.pagination(json)], hcloud.MalformedAnswer) > 100, name)
  }
})

t.test('no field of an answer of Robot can crash a run', async (t) => {
  const answer = [
    {
      server: {
        server_number: 321,
        server_name: 'r1',
        server_ip: '203.0.113.9',
        server_ipv6_net: '2001:db8::',
        product: 'EX44',
        dc: 'NBG1-DC3',
        status: 'ready',
        cancelled: false,
      },
    },
  ]
  const of = await hcloudBench.bench({ robot: { cacheTimeoutMs: -1 }, settings: { addressFamily: 'dualstack' } })
  t.teardown(() => of.close())
  const node = hcloudBench.node('r1', { addresses: [{ type: 'InternalIP', address: '10.1.0.5' }] })
  let refused = 0
  for (const [where, body] of odd(answer)) {
    of.simulator.control.fault({
      match: 'ROBOT GET /server',
      kind: 'http',
      status: 200,
      body: JSON.stringify(body),
      times: -1,
    })
    await of.provider.instances.find(node, of.call).catch((error) => {
      refused++
      if (!(error instanceof WindlassError)) t.fail(`${where}: ${error}`)
    })
    of.simulator.control.fault({ clear: true })
  }
  t.ok(refused > 5)
})

t.test('no field of an answer of Cherry Servers can crash a run', async (t) => {
  const b = await cherryBench.bench(t)
  await b.ensure(cherryBench.service())
  const get = async (path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${cherryBench.KEY}` }
    return (await fetch(`${b.simulator.apiUrl}${path}`, { headers })).json()
  }
  const project = `projects/${cherryBench.PROJECT}`
  const uses: [string, (json: unknown) => unknown][] = [
    [`${project}/servers`, (json) => cherry.parseList(json, cherry.parseServer).map(instanceOf)],
    [`${project}/ips`, (json) => cherry.parseList(json, cherry.parseAddress)],
    [project, cherry.parseProject],
  ]
  for (const [path, use] of uses) {
    const answer = await get(path)
    const few = Array.isArray(answer) ? answer.slice(0, 2) : answer
    t.ok(survives(t, few, use, cherry.MalformedAnswer) > 50, path)
  }
})
