import { readFileSync } from 'node:fs'
import type { WindlassProcess, World } from '../integration/world.ts'

/** Every call to the cloud takes so long, as it would over a network. */
export const LATENCY = { path: '.*', kind: 'delay', ms: 20, times: -1 }
export const LATENCY_AT_CHERRY = { path: '.*', kind: 'delay-before', delay: LATENCY.ms, times: -1 }

/** Resident memory of a process now, and the most that it ever had, in bytes. */
export function memoryOf(pid: number): { nowBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
  return { nowBytes: kilobytes('VmRSS') * 1024, peakBytes: kilobytes('VmHWM') * 1024 }
}

/**
 * How long the event loop was held up at the most in 99 of 100 moments since this was asked last, milliseconds: locks of jobs are renewed
 * every two seconds, and last five.
 */
export async function loopDelayOf(process: WindlassProcess): Promise<number> {
  const { host, port } = await process.logged('the server listens')
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text()
  return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(text)?.[1]) * 1000
}

/** CPU seconds that a process has used, user and system. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Calls to the cloud since `before`, by endpoint, most first. */
export function callsSince(world: World, before: Record<string, number>): { total: number; byEndpoint: string } {
  const { calls } = world.hcloud.control.counters()
  const made = Object.entries(calls)
    .map(([endpoint, count]) => [endpoint, count - (before[endpoint] ?? 0)] as const)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
  return {
    total: made.reduce((sum, [, count]) => sum + count, 0),
    byEndpoint: made.map(([endpoint, count]) => `${count} × ${endpoint}`).join(', '),
  }
}

/** Runs that a process logged, by kind of work. */
export function runsOf(process: WindlassProcess): string {
  const counts = new Map<string, number>()
  for (const { msg, kind, outcome } of process.lines())
    if (msg === 'run ended') counts.set(`${kind} ${outcome}`, (counts.get(`${kind} ${outcome}`) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${count} × ${what}`).join(', ')
}
