import type { ForwarderStats } from '../forwarder/forwarder.ts'

interface Row {
  /** Behind `windlass_forwarder_`. */
  name: string
  type: 'counter' | 'gauge'
  help: string
  /** From the number in the statistics to the metric's unit. */
  scale?: number
}

const MS = 1 / 1000

/** What is told of the forwarder's statistics; texts are for its log. */
const ROWS: { [K in Exclude<keyof ForwarderStats, 'epoch' | 'trouble'>]: Row } = {
  ready: { name: 'ready', type: 'gauge', help: '1 once the server has a whole snapshot of each kind, else 0.' },
  objects: { name: 'objects', type: 'gauge', help: 'Objects that are watched.' },
  pending: { name: 'pending', type: 'gauge', help: 'Changes and events that the server has not acknowledged.' },
  lagMs: { name: 'lag_seconds', type: 'gauge', help: 'How long the oldest of those has waited.', scale: MS },
  sent: { name: 'sent_total', type: 'counter', help: 'Events that were handed to delivery.' },
  acknowledged: { name: 'acknowledged_total', type: 'counter', help: 'Events that the server acknowledged.' },
  refused: { name: 'refused_total', type: 'counter', help: 'Events that the server found faulty.' },
  requests: { name: 'requests_total', type: 'counter', help: 'Batches that were begun, without retries.' },
  retries: { name: 'retries_total', type: 'counter', help: 'Attempts that were not accepted and came again.' },
  filtered: {
    name: 'filtered_total',
    type: 'counter',
    help: 'Changes in Kubernetes that never left, since no cloud controller looks at them.',
  },
  relists: { name: 'relists_total', type: 'counter', help: 'Lists that closed a gap in a watch.' },
  watchRestarts: { name: 'watch_restarts_total', type: 'counter', help: 'Watches that broke or fell silent.' },
  lastAcknowledgedMs: {
    name: 'last_acknowledged_timestamp_seconds',
    type: 'gauge',
    help: 'Unix time of the last acknowledgement; 0 before the first.',
    scale: MS,
  },
  lastSignOfLifeMs: {
    name: 'last_watch_timestamp_seconds',
    type: 'gauge',
    help: 'Unix time of the last byte of a watch, of the kind of which it is longest ago; 0 before the first.',
    scale: MS,
  },
}

/** Every metric of a forwarder, for the reference. */
export const FORWARDER_METRICS = Object.fromEntries(
  Object.values(ROWS).map(({ name, type, help }) => [fullName(name), { type, labels: ['cluster'], help }]),
)

/** The numbers of forwarders, by cluster, as Prometheus text; without the library, which would double what a forwarder weighs. */
export function forwarderMetrics(forwarders: ReadonlyMap<string, ForwarderStats>): string {
  const lines = Object.entries(ROWS).flatMap(([key, { name, type, help, scale = 1 }]) => {
    const full = fullName(name)
    const samples = [...forwarders].map(
      ([cluster, stats]) => `${full}{cluster="${cluster}"} ${Number(stats[key as keyof typeof ROWS]) * scale}`,
    )
    return [`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...samples]
  })
  return `${lines.join('\n')}\n`
}

function fullName(name: string): string {
  return `windlass_forwarder_${name}`
}
