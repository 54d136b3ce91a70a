import t from 'tap'
import type { Changed, Seen } from '../../../src/server/ingest/observe.ts'
import { triggersFor } from '../../../src/server/ingest/triggers.ts'
import { nodeOf, serviceOf } from '../../state/stores.ts'
import { nodeChanged, serviceChanged } from '../harness.ts'

const seen = (event: unknown, verdict: Seen['verdict'], more: Partial<Seen> = {}): Seen => ({
  event: event as Changed,
  verdict,
  targetsChanged: false,
  routesChanged: false,
  ...more,
})
const owed = (key: string, cause = 'changed', uid = 'u') => ({ key, cause, uid, entry: '' })
const asked = { cause: 'x', urgency: 'user', kind: 'route', key: 'Cluster/routes', delayMs: 5000 } as const
const node = nodeChanged(nodeOf('a', 1))
const service = serviceChanged(serviceOf('a', 1))

const rows: [what: string, args: Parameters<typeof triggersFor>, expected: object[]][] = [
  ['nothing asks for nothing', [[], [], { routes: true }], []],
  [
    'what is stale, handled or irrelevant asks for nothing',
    [(['stale', 'handled', 'irrelevant'] as const).map((verdict) => seen(node, verdict)), [], { routes: true }],
    [],
  ],
  [
    'changes are urgent, rechecks are not',
    [[seen(node, 'changed'), seen(service, 'recheck')], [], { routes: true }],
    [
      { kind: 'node', key: 'Node/a', urgency: 'user', cause: 'dev.windlass.node.changed' },
      { kind: 'service', key: 'Service/default/a', urgency: 'background', cause: 'snapshot' },
    ],
  ],
  [
    'a recheck of what also changed is urgent',
    [[seen(node, 'changed'), seen(node, 'recheck')], [], { routes: true }],
    [{ key: 'Node/a', urgency: 'user' }],
  ],
  [
    'what the state owes is urgent, and gathered where it is about the whole cluster',
    [[], [owed('Cluster/targets'), owed('Cluster/routes'), owed('Node/b', 'vanished')], { routes: true }],
    [
      { kind: 'targets', delayMs: 200, cause: 'node changed' },
      { kind: 'route', delayMs: 200 },
      { kind: 'node', key: 'Node/b', uid: 'u', urgency: 'user', cause: 'vanished' },
    ],
  ],
  ['routes that are off are nobody’s work', [[], [owed('Cluster/routes')], { routes: false }], []],
  [
    'what is asked for outright is one with what the state owes, which is due sooner',
    [[], [owed('Cluster/routes')], { routes: true }, [asked, { ...asked, kind: 'node', key: 'Node/a' }]],
    [
      { kind: 'route', delayMs: 200 },
      { kind: 'node', key: 'Node/a' },
    ],
  ],
  ['routes that are off are not asked for either', [[], [], { routes: false }, [asked]], []],
  [
    'the last event that changed the targets is to blame for the work on them',
    [
      [seen(node, 'handled', { targetsChanged: true }), seen(service, 'changed')],
      [owed('Cluster/targets')],
      { routes: true },
    ],
    [{ kind: 'targets', eventId: node.id }, { kind: 'service' }],
  ],
]
for (const [what, args, expected] of rows)
  t.test(what, async (t) => {
    const triggers = triggersFor(...args)
    t.equal(triggers.length, expected.length)
    t.match(triggers, expected)
  })
