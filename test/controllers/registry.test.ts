import t from 'tap'
import type { Call } from '../../src/call.ts'
import type { Cluster } from '../../src/controllers/cluster.ts'
import { controllersOf, STANDING_WORK } from '../../src/controllers/registry.ts'

t.test(
  'standing work of a controller that is off names its next time, since it would be asserted anew at once',
  async (t) => {
    const cluster = { framework: { controllers: new Set() }, resyncPeriodMs: 7000 } as unknown as Cluster
    const standing = STANDING_WORK.find(({ kind }) => kind === 'addresses')
    t.ok(standing)
    const request = { key: 'Cluster/addresses', cause: 'standing', urgency: 'background', call: {} as Call } as const
    t.same(await controllersOf(cluster).addresses(request), { requeueAfterMs: 7000 })
  },
)
