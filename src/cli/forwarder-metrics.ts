import type { ForwarderStats } from '../forwarder/forwarder.ts'

/** The forwarder's numbers as Prometheus text, without the library: it would double what the forwarder weighs. */
export function forwarderMetrics(stats: ForwarderStats): string {
  const lines: string[] = []
  for (const [name, value] of Object.entries(stats))
    if (typeof value === 'number') lines.push(`windlass_forwarder_${snake(name)} ${value}`)
    else if (typeof value === 'boolean') lines.push(`windlass_forwarder_${snake(name)} ${value ? 1 : 0}`)
  return `${lines.join('\n')}\n`
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
