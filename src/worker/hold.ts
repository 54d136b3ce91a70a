import { aborted, messageOf } from '../errors.ts'

/** Why a run must not write any more. */
export type Revoked = 'lost' | 'stopping' | 'overrun'

/** A run's claim on its object, as this process knows it. Times are of the monotonic clock. */
export interface Hold {
  readonly signal: AbortSignal
  readonly revoked: Revoked | undefined
  /** Neither revoked nor past its deadline. */
  isAlive(): boolean
  /** The lock was confirmed to last until then, counted from before the question was sent. */
  extend(untilMs: number): void
  revoke(why: Revoked): void
  /** Directly before each write: deadline, then fence, then the deadline again. Throws `aborted`. */
  beforeWrite(what: string): Promise<void>
  /** The run is over: no timer stays. */
  end(): void
}

/**
 * `ownsFence` asks Redis whether the object's fence is still this run's. A process that was frozen or blocked finds its deadline passed
 * before it asks; one whose clock stood still finds the fence moved.
 */
export function createHold(object: string, untilMs: number, ownsFence: () => Promise<boolean>): Hold {
  const controller = new AbortController()
  let deadlineMs = untilMs
  let revoked: Revoked | undefined
  let timer = arm()

  function arm(): NodeJS.Timeout {
    return setTimeout(
      () => {
        if (isAlive()) timer = arm()
      },
      Math.max(0, deadlineMs - performance.now()) + 1,
    )
  }

  function revoke(why: Revoked): void {
    if (revoked) return
    revoked = why
    clearTimeout(timer)
    controller.abort(aborted(`The run on ${object} ${REASON[why]}`))
  }

  function isAlive(): boolean {
    if (!revoked && performance.now() >= deadlineMs) revoke('lost')
    return revoked === undefined
  }

  function check(what: string): void {
    if (!isAlive() && revoked) throw aborted(`${what}: not done, since the run on ${object} ${REASON[revoked]}`)
  }

  return {
    signal: controller.signal,
    get revoked() {
      return revoked
    },
    isAlive,
    extend(nextMs) {
      if (!revoked) deadlineMs = Math.max(deadlineMs, nextMs)
    },
    revoke,
    async beforeWrite(what) {
      check(what)
      let owned: boolean
      try {
        owned = await ownsFence()
      } catch (error) {
        throw aborted(
          `${what}: not done, since Redis did not say whether the run on ${object} still has it: ${messageOf(error)}`,
        )
      }
      if (!owned) revoke('lost')
      check(what)
    },
    end: () => clearTimeout(timer),
  }
}

const REASON: Record<Revoked, string> = {
  lost: 'lost its claim to another worker, or could not renew it in time',
  stopping: 'is handed back, because this worker is being shut down',
  overrun: 'took longer than a run may take',
}
