import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import type { ControlPlaneAddress } from '../../cloud/provider.ts'
import { kindOf, messageOf, throttled } from '../../errors.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type Cluster, COMPONENT, nodeObject } from '../cluster.ts'
import { type ControlPlaneReading, createControlPlane } from './control-plane.ts'
import { type ControlPlaneNode, decide } from './decide.ts'
import { createDoubt } from './doubt.ts'
import { syncExternalService } from './external-service.ts'
import type { Health } from './health.ts'
import { askedPlace, type Judgement, judge, PROBING, thoseThatAnswer } from './judge.ts'
import { createLease, type Term } from './lease.ts'
import { createPause } from './pause.ts'
import { startWatch } from './watch.ts'

export interface ControlPlaneIpOptions {
  cluster: Cluster
  address: ControlPlaneAddress
  redis: Redis
  /** Before every key in Redis, without trailing colon. */
  prefix: string
  log: Logger
  health: Health
  /** Why nothing may be written now; undefined when it may. */
  problem?(): string | undefined
  /** Times of the tests are shorter. */
  timings?: Partial<ControlPlaneIpTimings>
}

export interface ControlPlaneIpTimings {
  /** From the beginning of a look at cloud and cluster to the beginning of the next. */
  periodMs: number
  leaseMs: number
  /** Between two tries to take over from another process. */
  standbyMs: number
  /** From one probe of the holder to the next. */
  probeEveryMs: number
  probeTimeoutMs: number
  /** The same while it does not answer. */
  probeGapMs: number
  /** After a move nothing is concluded from silence for so long. */
  settleMs: number
  /** The address fails, but the machine that has it answers: something between us may be broken, so it waits this long. */
  doubtMs: number
  /** And after a move on such doubt, this long for the next one. */
  restMs: number
}

export interface ControlPlaneIp {
  stop(): Promise<void>
}

/**
 * Made so that the address has moved within ten seconds of whatever happens to its machine. One that falls silent: a second until the next
 * probe, two seconds more until the third, two until that has failed; then its own addresses and those of others, two, and a second or
 * two for the cloud, whose requests are paced. One that is cordoned: a period until it is seen, and the same.
 */
const TIMINGS: ControlPlaneIpTimings = {
  periodMs: 5000,
  leaseMs: 5000,
  standbyMs: 1000,
  probeEveryMs: 1000,
  probeTimeoutMs: PROBING.timeoutMs,
  probeGapMs: PROBING.gapMs,
  settleMs: 10_000,
  doubtMs: 60_000,
  restMs: 600_000,
}

/** Kubernetes is not waited for longer. */
const READ_PATIENCE_MS = 1000
/** Two failures that far apart are none in a row. */
const PERIODS_UNBROKEN = 4
/** At first nodes are new, and which machines they are is not known yet: one that goes soon must be known to have been a node. */
const EARLY = { looks: 3, readsBetween: 4 } as const

/**
 * Keeps the control plane's floating address on a machine whose API server answers, by a loop of its own: it must work while Kubernetes
 * does not, and the queue of the cluster may wait for just that. One process at a time does it, by a lease in Redis.
 */
export function startControlPlaneIp(options: ControlPlaneIpOptions): ControlPlaneIp {
  const { cluster, address, redis, prefix, health, problem = () => undefined } = options
  const log = options.log.child({ controller: 'control-plane-ip' })
  const timings = { ...TIMINGS, ...options.timings }
  const key = (what: string) => `{${prefix}}:v1:control-plane-ip:${cluster.id}:${what}`
  const lease = createLease(redis, key('lease'), timings.leaseMs)
  const { read, readWithin } = createControlPlane(cluster.kubernetes, redis, key('known'))
  const stopped = new AbortController()
  const { signal } = stopped
  const { doubtMs, restMs, periodMs } = timings
  const pause = createPause(signal)
  const { probeEveryMs: everyMs, probeGapMs: gapMs, probeTimeoutMs: timeoutMs, settleMs } = timings
  const watch = startWatch(health, { everyMs, gapMs, timeoutMs, settleMs }, signal, pause.wake)
  const doubt = createDoubt({ doubtMs, restMs, gapMs: PERIODS_UNBROKEN * periodMs })
  let said = ''

  /** What is seen from now on is a ground for writes only as long as the lease has no gap. */
  const callIn = (term: Term): Call => ({
    signal,
    urgency: 'urgent',
    log,
    async beforeWrite(what) {
      const why = problem()
      if (why !== undefined) throw throttled(`${what}: not done. ${why}`, Date.now() + timings.periodMs)
      await lease.check(what, term)
    },
  })

  async function keep(
    ip: string,
    id: string,
    holder: readonly string[] | undefined,
    { controlPlane }: ControlPlaneReading,
    call: Call,
  ) {
    const { nodes, port, known } = controlPlane
    if (port === undefined) return
    const asking = { health, ip, port, address, timeoutMs, gapMs, signal, watch }
    const situation = { nodes, holder, known: new Set(known) }
    const verdict = decide(situation)
    const place = verdict.kind === 'check' ? askedPlace(verdict.node, asking) : undefined
    watch.follow(place && holder && { ...place, holder: holder.join(' ') })
    // Who could take it is asked beside whether it has to be taken: both may take their time.
    const suspected = place && !['sound', 'settling'].includes(watch.see(place.at, place.port))
    const others = suspected ? thoseThatAnswer(verdict.candidates, asking) : undefined
    const judgement = await judge(situation, asking)
    if (judgement.kind === 'sound') doubt.settled()
    if (judgement.kind === 'sound' || (judgement.kind === 'failing' && waits(judgement))) return
    const { why, candidates } = judgement
    const answering = await (others ?? thoseThatAnswer(candidates, asking))
    if (answering.length === 0) {
      tell('warn', `no other API server of the control plane answers, so its address stays (${why})`)
      return
    }
    await move(id, ip, answering, why, call)
  }

  function waits({ why, machine }: Extract<Judgement, { kind: 'failing' }>): boolean {
    const stays = doubt.waits(performance.now(), machine !== undefined)
    if (stays) tell('warn', `${why}, but machine ${machine?.name} does; perhaps the way from here is broken`)
    return stays
  }

  /** To the first that the cloud takes: a machine may be in another region, or just gone. */
  async function move(
    id: string,
    ip: string,
    candidates: readonly ControlPlaneNode[],
    why: string,
    call: Call,
  ): Promise<void> {
    let refusal: unknown
    for (const { name, uid, providerId = '' } of candidates) {
      try {
        await address.assign(id, providerId, call)
      } catch (error) {
        const kind = kindOf(error)
        if (kind === 'aborted' || kind === 'throttled') throw error
        refusal ??= error
        continue
      }
      doubt.settled()
      watch.moved()
      log.warn({ node: name, address: ip, why }, "moved the control plane's address")
      cluster.recorder.record({
        object: nodeObject({ name, uid }),
        type: 'Normal',
        reason: 'ControlPlaneAddressAssigned',
        message: `Node ${name} has the control plane's address ${ip} now: ${why}`,
        component: COMPONENT.windlass,
      })
      return
    }
    throw refusal
  }

  /** What lasts is said once. */
  function tell(level: 'warn' | 'info', what: string): void {
    if (said !== what) log[level](what)
    said = what
  }

  async function look(call: Call): Promise<void> {
    const [reading, found] = await Promise.all([readWithin(READ_PATIENCE_MS, call), address.find(call)])
    if (!found.address) {
      tell('warn', `no address for the control plane: there is no ${found.searched}`)
      return
    }
    const { id, ip, holder } = found.address
    const { slices, controlPlane } = reading
    const outcomes = await Promise.allSettled([
      keep(ip, id, holder, reading, call),
      slices && controlPlane.port !== undefined
        ? syncExternalService(
            cluster.kubernetes,
            { ip, port: address.port || controlPlane.port, targetPort: controlPlane.port, slices },
            call,
          )
        : undefined,
    ])
    for (const outcome of outcomes) if (outcome.status === 'rejected') report(outcome.reason)
  }

  function report(error: unknown): void {
    if (signal.aborted || kindOf(error) === 'aborted') return
    tell('warn', `the control plane's address could not be looked after: ${messageOf(error)}`)
  }

  async function run(): Promise<void> {
    let last: Term | undefined
    for (let looks = 0; !signal.aborted; ) {
      const begunMs = performance.now()
      const term = await lease.hold()
      if (term !== last) watch.follow(undefined)
      last = term
      if (term === undefined) {
        await pause.until(begunMs + timings.standbyMs)
        continue
      }
      looks++
      const call = callIn(term)
      await look(call).catch(report)
      const parts = looks <= EARLY.looks ? EARLY.readsBetween + 1 : 1
      for (let part = 1; part <= parts; part++) {
        if ((await pause.until(begunMs + (periodMs * part) / parts)) === 'woken') break
        if (part < parts && !signal.aborted) await read(call).catch(() => {})
      }
    }
  }

  // A look may take longer than the lease.
  const renewal = setInterval(() => void lease.hold(), timings.leaseMs / 3)
  renewal.unref()
  const running = run()
  return {
    async stop() {
      stopped.abort()
      clearInterval(renewal)
      await running
      await lease.release()
    },
  }
}
