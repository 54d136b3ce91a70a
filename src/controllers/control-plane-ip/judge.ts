import { setTimeout as delay } from 'node:timers/promises'
import type { ControlPlaneAddress } from '../../cloud/provider.ts'
import { type ControlPlaneNode, decide, hostAddress, machineAddresses, type Situation } from './decide.ts'
import type { Health } from './health.ts'
import { PROBES, type Watch } from './watch.ts'

export const PROBING = { timeoutMs: 2000, gapMs: 500 } as const

export interface Asking {
  health: Health
  /** The floating address. */
  ip: string
  /** Of the API server at its machines. */
  port: number
  address: Pick<ControlPlaneAddress, 'port' | 'checkMachine'>
  timeoutMs: number
  /** Between two probes of the holder while it does not answer. */
  gapMs: number
  signal: AbortSignal
  /** What was seen of late, where somebody looks all the time. */
  watch?: Pick<Watch, 'see'>
}

export type Judgement =
  /** The API server answers where it is. */
  | { kind: 'sound'; at: string }
  /** It has to go, whoever answers. */
  | { kind: 'leave'; why: string; candidates: ControlPlaneNode[] }
  /** No API server answers there. `machine` is the holder if it does at its own addresses: then the way to it may be what is broken. */
  | { kind: 'failing'; at: string; why: string; candidates: ControlPlaneNode[]; machine?: ControlPlaneNode }

/** Whether the address has to leave its machine, and the health of that one if it comes to that. Changes nothing. */
export async function judge(situation: Situation, asking: Asking): Promise<Judgement> {
  const verdict = decide(situation)
  const { candidates } = verdict
  if (verdict.kind === 'move') return { kind: 'leave', why: verdict.why, candidates }
  const { node } = verdict
  const { at, port } = askedPlace(node, asking)
  const seen = asking.watch?.see(at, port) ?? 'unknown'
  if (seen === 'sound' || seen === 'settling') return { kind: 'sound', at: `${at}:${port}` }
  // Beside each other: both may take their time.
  const [sound, alive] = await Promise.all([
    seen === 'unknown' && answersInTime(at, port, asking),
    node && machineAnswers(node, asking),
  ])
  if (sound) return { kind: 'sound', at: `${at}:${port}` }
  const why = `its API server does not answer at ${at}`
  const machine = alive ? node : undefined
  return { kind: 'failing', at: `${at}:${port}`, why, candidates, ...(machine ? { machine } : {}) }
}

/** Those of the nodes whose own API server answers, in their order. */
export async function thoseThatAnswer(nodes: readonly ControlPlaneNode[], asking: Asking): Promise<ControlPlaneNode[]> {
  const answered = await Promise.all(nodes.map((node) => machineAnswers(node, asking)))
  return nodes.filter((_, i) => answered[i])
}

/** Where it is asked whether the API server answers at the address. */
export function askedPlace(
  node: ControlPlaneNode | undefined,
  { ip, port, address }: Asking,
): { at: string; port: number } {
  const host = node && address.checkMachine ? hostAddress(node, ip) : undefined
  return host === undefined ? { at: ip, port: address.port || port } : { at: host, port }
}

/** Each try begins without waiting for the end of the one before: what hangs must not cost its time-out several times. */
async function answersInTime(at: string, port: number, { health, timeoutMs, gapMs, signal }: Asking): Promise<boolean> {
  const enough = new AbortController()
  const either = AbortSignal.any([signal, enough.signal])
  const ask = async (after: number) => {
    if (after > 0) await delay(after * gapMs, undefined, { signal: either })
    return await health({ address: at, port, timeoutMs, signal: either })
  }
  const answers = Array.from({ length: PROBES }, async (_, i) => {
    if (!(await ask(i))) throw new Error('no answer')
  })
  try {
    await Promise.any(answers)
    return true
  } catch {
    return false
  } finally {
    enough.abort()
  }
}

async function machineAnswers(
  node: ControlPlaneNode,
  { health, ip, port, timeoutMs, signal }: Asking,
): Promise<boolean> {
  const asked = machineAddresses(node, ip).map((address) => health({ address, port, timeoutMs, signal }))
  return (await Promise.all(asked)).some(Boolean)
}
