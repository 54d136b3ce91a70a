import t from 'tap'
import { isInitialised, startWorld } from '../../integration/world.ts'
import { shortLived } from '../short-lived.ts'

const written = (calls: Record<string, number>) => Object.keys(calls).filter((label) => !/(^| )GET /.test(label))

t.test('Services that are none of ours are not written to, and nothing is made for them', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', clouds: ['hcloud', 'cherry'] })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [{ id: 1, name: 'h1' }] })
  await world.cherry.control.seed({ servers: [{ id: 383531, hostname: 'c1' }] })
  const workers = await shortLived(world)
  t.teardown(() => workers.close())
  for (const name of ['h1', 'c1']) {
    await world.addNode(name)
    await workers.settle('node', `Node/${name}`)
  }
  t.ok((await world.nodes()).every(isInitialised))
  t.same(written(world.cherry.control.counters().calls), [], 'no BGP for nodes alone')
  const ports = [{ name: 'http', port: 80 }]
  const made = [
    await world.addService('of-metallb', { loadBalancerClass: 'metallb.io/metallb', ports }),
    await world.addService('cloud-provider-cherry-kubernetes-external', { namespace: 'kube-system', ports }),
    await world.addService('of-cilium', { loadBalancerClass: 'io.cilium/l2-announcer', ports }),
  ]
  await workers.settle('resync', 'Cluster/resync')
  for (const { metadata } of made) {
    const key = `Service/${metadata.namespace}/${metadata.name}`
    await workers.settle('service', key)
    await workers.settle('targets', 'Cluster/targets')
    await workers.settle('service', key)
  }
  const now = new Map((await world.services()).map(({ metadata }) => [metadata.name, metadata]))
  for (const { metadata } of made) {
    t.equal(now.get(metadata.name)?.resourceVersion, metadata.resourceVersion, metadata.name)
    t.notOk(now.get(metadata.name)?.finalizers?.length, metadata.name)
  }
  t.same(written(world.cherry.control.counters().calls), [])
  t.same(written(world.hcloud.control.counters().calls), [])

  await world.addService('ours', { loadBalancerClass: 'windlass.dev/cherryservers', ports })
  await workers.settle('service', 'Service/default/ours')
  t.ok(written(world.cherry.control.counters().calls).includes('PUT /servers/{id}'), 'one of ours brings BGP along')
  t.same(written(world.hcloud.control.counters().calls), [])
})
