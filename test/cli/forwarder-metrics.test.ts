import t from 'tap'
import { forwarderMetrics } from '../../src/cli/forwarder-metrics.ts'
import type { ForwarderStats } from '../../src/forwarder/forwarder.ts'

const stats: ForwarderStats = {
  ready: true,
  objects: 12,
  pending: 3,
  lagMs: 1500,
  sent: 40,
  acknowledged: 37,
  refused: 0,
  requests: 9,
  retries: 2,
  filtered: 900,
  relists: 1,
  watchRestarts: 1,
  lastAcknowledgedMs: 1_790_000_000_250,
  lastSignOfLifeMs: 1_790_000_001_000,
  epoch: 'e',
  trouble: undefined,
}

t.test("the forwarder's numbers are Prometheus text, in base units, by cluster", async (t) => {
  const text = forwarderMetrics(
    new Map([
      ['prod', stats],
      ['lab', { ...stats, ready: false }],
    ]),
  )
  t.match(
    text,
    '# TYPE windlass_forwarder_ready gauge\nwindlass_forwarder_ready{cluster="prod"} 1\nwindlass_forwarder_ready{cluster="lab"} 0\n',
  )
  t.match(text, 'windlass_forwarder_lag_seconds{cluster="prod"} 1.5\n')
  t.match(text, 'windlass_forwarder_acknowledged_total{cluster="prod"} 37\n')
  t.match(text, 'windlass_forwarder_last_acknowledged_timestamp_seconds{cluster="prod"} 1790000000.25\n')
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  t.equal(samples.length, 2 * (Object.keys(stats).length - 2), 'all but the texts')
  for (const sample of samples) t.match(sample, /^windlass_forwarder_[a-z_]+\{cluster="(prod|lab)"\} [0-9.e+]+$/)
})
