import { randomUUID } from 'node:crypto'
import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { startIssuer } from '../server/issuer.ts'
import { nodeReference, post, serviceReference } from '../server/knative-source.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

const AUDIENCE = 'windlass/default'
const SUBJECT = 'system:serviceaccount:windlass:windlass-oidc-sources.knative.dev-apiserversource'

for (const mode of ['Resource', 'Reference'] as const)
  t.test(
    `a Service of which Knative alone tells, in event mode ${mode}, gets its load balancer, and a Node becomes its target`,
    async (t) => {
      const world = await startWorld()
      t.teardown(() => world.stop())
      const issuer = await startIssuer(t)
      await world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
      const server = world.start('server', {
        env: {
          WINDLASS_KNATIVE_OIDC_ISSUER: issuer.url,
          WINDLASS_KNATIVE_OIDC_AUDIENCE: AUDIENCE,
          WINDLASS_KNATIVE_OIDC_SUBJECT: SUBJECT,
        },
      })
      const { host, port } = await server.logged('the server listens')
      const worker = world.start('worker', { env: { WINDLASS_RESYNC_PERIOD: '24h' } })
      // Else it may be this look at everything that finds what the events are to tell of.
      await worker.logged('enqueued everything once more')

      const url = `http://${host}:${port}`
      const token = await issuer.token({ aud: [AUDIENCE], sub: SUBJECT })
      /** A server that has just begun may be too busy: then the event comes again, as from Knative. */
      const tell = async (type: Parameters<typeof post>[1], data: unknown) => {
        const attributes = { id: randomUUID() }
        const sent = async () => {
          const { status } = await post(url, type, data, { token, attributes })
          if (status !== 202 && status !== 503) throw new Error(`answered ${status}`)
          return status === 202
        }
        await eventually(sent, `${type} is taken`)
      }
      const tellNode = async (change: 'add' | 'update') => {
        const node = await world.api.get(NODES, { name: 'w1' }, world.call)
        if (mode === 'Resource') await tell(change, { ...node, apiVersion: 'v1', kind: 'Node' })
        else await tell(change === 'add' ? 'refAdd' : 'refUpdate', nodeReference('w1'))
      }
      const service = { ...(await world.addService('web')), apiVersion: 'v1', kind: 'Service' }
      if (mode === 'Resource') await tell('add', service)
      else await tell('refAdd', serviceReference('web'))
      await eventually(async () => {
        const found = await world.api.get(SERVICES, { namespace: 'default', name: 'web' }, world.call)
        return Boolean(found?.status?.loadBalancer?.ingress?.length)
      }, 'the Service has an address')

      await world.addNode('w1')
      await tellNode('add')
      await eventually(async () => (await world.nodes()).every(isInitialised), 'the node is initialised')
      // By our own writes it has become a target.
      await tellNode('update')
      await eventually(async () => {
        const [balancer] = (await world.account()).load_balancers
        return balancer?.targets.length === 1 && balancer.targets[0]?.server?.id === 1
      }, 'the load balancer has the node as target')
      t.equal((await world.account()).load_balancers.length, 1)
    },
  )
