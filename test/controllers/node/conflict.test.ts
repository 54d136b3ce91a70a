import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

t.test(
  'a node that kubelet changes between our two writes is finished, and says once that it was initialised',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator' })
    t.teardown(() => world.stop())
    const names = Array.from({ length: 8 }, (_, i) => `w${i}`)
    world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
    for (const name of names) await world.addNode(name)
    world.start('all')
    // Kubelets that report all the time: every write of ours meets newer versions.
    let busy = true
    const heartbeats = names.map(async (name) => {
      while (busy) {
        const status = { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() }] }
        const patch = { type: 'strategic', subresource: 'status', body: { status } } as const
        await world.api.patch(NODES, { name }, patch, world.call)
        await delay(10)
      }
    })
    try {
      await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
    } finally {
      busy = false
      await Promise.all(heartbeats)
    }
    const synced = await eventually(async () => {
      const events = (await world.events()).filter(({ reason }) => reason === 'Synced')
      return new Set(events.map(({ involvedObject }) => involvedObject.name)).size === names.length && events
    }, 'each has its Event')
    t.equal(synced.length, names.length)
  },
)
