import { answerOf, textOf } from '../state/script.ts'
import type { ClusterQueue } from './cluster-queue.ts'
import type { Backlog } from './types.ts'

const SOON_MS = 60_000

/** How much work of a cluster waits, runs, or is due soon. Five reads in one round trip, whatever the queue's length. */
export async function backlog({ cluster, redis, ledger }: ClusterQueue, nowMs = Date.now()): Promise<Backlog> {
  const { bull, due } = ledger.keys
  const results = await redis
    .pipeline()
    .llen(`${bull}wait`)
    .zcard(`${bull}prioritized`)
    .llen(`${bull}active`)
    .zcard(`${bull}delayed`)
    .zcount(`${bull}delayed`, '-inf', (nowMs + SOON_MS) * DELAYED_SCORE)
    .zcard(`${bull}failed`)
    .zrange(due, 0, '0', 'WITHSCORES')
    .zrange(`${bull}delayed`, 0, '0', 'WITHSCORES')
    .exec()
  const count = (index: number) => Number(answerOf(results, index))
  const waiting = count(0) + count(1)
  const score = (index: number) => {
    const answer = answerOf(results, index)
    const text = Array.isArray(answer) ? textOf(answer[1]) : undefined
    return text === undefined ? undefined : Number(text)
  }
  const dueAtMs = score(6)
  const delayed = score(7)
  const delayedAtMs = delayed === undefined ? undefined : Math.floor(delayed / DELAYED_SCORE)
  const oldestMs = Math.min(waiting > 0 ? (dueAtMs ?? nowMs) : nowMs, delayedAtMs ?? nowMs)
  return {
    cluster,
    waiting,
    active: count(2),
    delayed: count(3),
    dueSoon: count(4),
    failed: count(5),
    oldestWaitingMs: Math.max(0, nowMs - oldestMs),
  }
}

/** BullMQ's score of a delayed job is its time in milliseconds times this. */
export const DELAYED_SCORE = 4096
