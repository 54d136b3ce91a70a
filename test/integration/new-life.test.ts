import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createKubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'
import { eventually, isInitialised, nodeManifest, startWorld } from './world.ts'

const NAMES = ['w1', 'w2']
/** Less than the period of the resync that would repair it. */
const SOON_MS = 30_000

for (const restored of [false, true])
  t.test(
    restored
      ? 'a cluster that was brought back from a backup is served by a Redis that knows later versions of the same objects'
      : 'a cluster that was made anew under the same id is served by a Redis that knows the former one',
    async (t) => {
      const world = await startWorld({ kubernetes: 'simulator' })
      t.teardown(() => world.stop())
      world.hcloud.control.seed({ servers: NAMES.map((name, i) => ({ id: i + 1, name })) })
      const first = world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '24h' } })
      for (const name of NAMES) await world.addNode(name)
      await world.addService('web')
      for (let i = 0; i < 200; i++) {
        const body = { metadata: { labels: { turn: String(i) } } }
        await world.api.patch(NODES, { name: 'w1' }, { type: 'merge', body }, world.call)
      }
      // Its deletion is remembered by a high version.
      await world.addService('late')
      await eventually(
        async () => (await world.nodes()).every(isInitialised) && (await world.account()).load_balancers.length === 2,
        'the first life is served',
      )
      await world.api.delete(SERVICES, { namespace: 'default', name: 'late' }, world.call)
      await eventually(async () => (await world.account()).load_balancers.length === 1, 'a Service went')
      const formerNodes = await world.nodes()
      const formerUid = (await world.services())[0]?.metadata.uid as string
      await first.end()

      const second = await startKubernetesSimulator({ kinds: [] })
      t.teardown(() => second.close())
      const KUBECONFIG = join(world.dir, 'second.kubeconfig')
      writeFileSync(KUBECONFIG, second.kubeconfig)
      const connection = await connect({ kubeconfig: [KUBECONFIG] }, createLogger({ level: 'silent' }))
      t.teardown(() => connection.close())
      const api = createKubernetesApi(connection)
      const withUid = (plural: string, name: string, uid: string, namespace?: string) => {
        second.store.get(second.kind(plural), namespace, name).metadata.uid = uid
      }
      const add = async (name: string) => {
        const { node, status } = nodeManifest(name)
        await api.create(NODES, node, world.call)
        await api.patch(NODES, { name }, { type: 'merge', subresource: 'status', body: { status } }, world.call)
        const uid = formerNodes.find(({ metadata }) => metadata.name === name)?.metadata.uid
        // What is added once it runs was not in the backup.
        if (restored && name === 'w1' && uid !== undefined) withUid('nodes', name, uid)
      }
      const serve = async (name: string) => {
        const ports = [{ name: 'http', port: 8080 }]
        const spec = { type: 'LoadBalancer', selector: { app: name }, ports }
        await api.create(SERVICES, { metadata: { name, namespace: 'default' }, spec }, world.call)
        if (restored && name === 'web') withUid('services', name, formerUid, 'default')
      }
      await add('w1')
      await serve('web')
      world.start('all', { env: { KUBECONFIG, WINDLASS_RESYNC_PERIOD: '24h' } })
      const services = async () =>
        (await api.list(SERVICES, {}, world.call)).items.filter(({ metadata }) => metadata.name !== 'kubernetes')
      const served = async (count: number) => {
        const [nodes, all] = [(await api.list(NODES, {}, world.call)).items, await services()]
        const { load_balancers } = await world.account()
        const uids = all.map(({ metadata }) => metadata.uid).sort()
        return (
          nodes.length === count &&
          nodes.every(isInitialised) &&
          all.every(({ status }) => status?.loadBalancer?.ingress?.length) &&
          `${load_balancers.map(({ labels }) => labels['hcloud-ccm/service-uid']).sort()}` === `${uids}` &&
          load_balancers.every(
            (one) => one.services.every(({ listen_port }) => listen_port === 8080) && one.targets.length === count,
          )
        )
      }
      await eventually(() => served(1), 'what the first snapshot has is served', SOON_MS)
      await add('w2')
      await serve('late')
      await eventually(() => served(2), 'what comes afterwards is served', SOON_MS)
      const versions = (await services()).map(({ metadata }) => Number(metadata.resourceVersion))
      const former = Math.max(...formerNodes.map(({ metadata }) => Number(metadata.resourceVersion)))
      t.ok(Math.max(...versions) < former, 'all of it by lower versions than those of the former life')
    },
  )
