/** A sleep that somebody else may end. */
export interface Pause {
  /** Until then (monotonic milliseconds), or until it is woken, be that from before, or stopped. */
  until(atMs: number): Promise<'over' | 'woken'>
  wake(): void
}

export function createPause(signal: AbortSignal): Pause {
  let woken = false
  let end = () => {}
  return {
    until: (atMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(finish, Math.max(0, atMs - performance.now()))
        function finish() {
          clearTimeout(timer)
          signal.removeEventListener('abort', finish)
          end = () => {}
          resolve(woken ? 'woken' : 'over')
          woken = false
        }
        end = finish
        signal.addEventListener('abort', finish, { once: true })
        if (woken || signal.aborted) finish()
      }),
    wake() {
      woken = true
      end()
    },
  }
}
