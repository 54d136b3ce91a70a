import type { Troupe } from './troupe.ts'

interface Seen {
  atMs: number
  key: string
}

/**
 * Milliseconds from each kill -9 of a worker to the next run of each object that it was working on, sorted. An object that no worker ran again
 * needed no further run: the dead one had come to its end in Redis, and only its log had not.
 */
export function takeOverTimes(troupe: Troupe): number[] {
  const workers = troupe.lives.filter(({ role }) => role.startsWith('worker'))
  const started: Seen[] = workers.flatMap(({ process }) => seen(process.lines(), 'run started'))
  return workers
    .flatMap(({ process, killedAtMs }) => {
      if (killedAtMs === undefined) return []
      const lines = process.lines()
      const ended = new Set(lines.filter(({ msg }) => msg === 'run ended').map(({ jobId, key }) => `${jobId} ${key}`))
      const open = lines.filter(({ msg, jobId, key }) => msg === 'run started' && !ended.has(`${jobId} ${key}`))
      return open.flatMap(({ key }) => {
        const next = started.filter((one) => one.key === key && one.atMs > killedAtMs).map(({ atMs }) => atMs)
        return next.length > 0 ? [Math.min(...next) - killedAtMs] : []
      })
    })
    .sort((a, b) => a - b)
}

/** Runs that did not get through, by outcome and reason, most frequent first. */
export function failedRuns(troupe: Troupe): [what: string, count: number][] {
  const counts = new Map<string, number>()
  for (const { process } of troupe.lives)
    for (const { msg, kind, outcome, error } of process.lines()) {
      if (msg !== 'run ended' || outcome === 'done') continue
      const what = `${kind} ${outcome}: ${String(error)
        .replace(/[0-9a-f-]{36}|\d+/g, 'N')
        .slice(0, 200)}`
      counts.set(what, (counts.get(what) ?? 0) + 1)
    }
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, 10)
}

function seen(lines: Record<string, unknown>[], message: string): Seen[] {
  return lines
    .filter(({ msg }) => msg === message)
    .map(({ time, key }) => ({ atMs: Date.parse(String(time)), key: String(key) }))
}
