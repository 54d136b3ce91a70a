const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const end = () => process.exit(0)

/**
 * Until a role runs, and says itself how it ends, a signal ends the process at once: nothing has begun by then. By default it would, too, but
 * not the first process of a container, for which it would have no effect.
 */
export function endAtSignal(): void {
  for (const signal of SIGNALS) process.on(signal, end)
}

export function leaveSignalsToRole(): void {
  for (const signal of SIGNALS) process.off(signal, end)
}
