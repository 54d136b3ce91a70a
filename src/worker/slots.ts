/** How many runs go at a time, shared over clusters. */
export interface Slots {
  /** Resolves to true with a slot, to false once closed. */
  acquire(cluster: string): Promise<boolean>
  release(cluster: string): void
  readonly taken: number
  /** Those who wait for a slot get none any more. */
  close(): void
}

/**
 * A cluster that waits gets a slot before one that has more of them. And a part stays free for each of the others, so that runs of one
 * cluster that hang at a slow cloud can't take all slots one after the other: with n clusters each has at least a half of its fair part to itself.
 */
export function createSlots(total: number, clusters: number): Slots {
  const reserved = clusters > 1 ? Math.floor(total / (2 * clusters)) || (total >= clusters ? 1 : 0) : 0
  const most = Math.max(1, total - reserved * (clusters - 1))
  const running = new Map<string, number>()
  const waiting: { cluster: string; give: (slot: boolean) => void }[] = []
  let taken = 0
  let closed = false

  const has = (cluster: string) => running.get(cluster) ?? 0

  function hand(): void {
    while (taken < total) {
      let next = -1
      for (const [index, { cluster }] of waiting.entries()) {
        const best = waiting[next]
        if (has(cluster) < most && (best === undefined || has(cluster) < has(best.cluster))) next = index
      }
      const [chosen] = next < 0 ? [] : waiting.splice(next, 1)
      if (!chosen) return
      taken++
      running.set(chosen.cluster, has(chosen.cluster) + 1)
      chosen.give(true)
    }
  }

  return {
    acquire(cluster) {
      if (closed) return Promise.resolve(false)
      return new Promise((give) => {
        waiting.push({ cluster, give })
        hand()
      })
    },
    release(cluster) {
      taken--
      running.set(cluster, has(cluster) - 1)
      if (!closed) hand()
    },
    get taken() {
      return taken
    },
    close() {
      closed = true
      for (const { give } of waiting.splice(0)) give(false)
    },
  }
}
