import { setTimeout as delay } from 'node:timers/promises'
import type { ControlPlaneAddress } from '../../cloud/provider.ts'
import { type ControlPlaneNode, decide, hostAddress, machineAddresses, type Situation } from './decide.ts'
import type { Health } from './health.ts'

/** The holder has failed when it fails so often in a row. */
const PROBES = 3

export const PROBING = { timeoutMs: 3000, gapMs: 500 } as const

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
  if (await answersInTime(at, port, asking)) return { kind: 'sound', at: `${at}:${port}` }
  const why = `its API server does not answer at ${at}`
  const machine = node && (await machineAnswers(node, asking)) ? node : undefined
  return { kind: 'failing', at: `${at}:${port}`, why, candidates, ...(machine ? { machine } : {}) }
}

/** Those of the nodes whose own API server answers, in their order. */
export async function thoseThatAnswer(nodes: readonly ControlPlaneNode[], asking: Asking): Promise<ControlPlaneNode[]> {
  const answered = await Promise.all(nodes.map((node) => machineAnswers(node, asking)))
  return nodes.filter((_, i) => answered[i])
}

function askedPlace(node: ControlPlaneNode | undefined, { ip, port, address }: Asking): { at: string; port: number } {
  const host = node && address.checkMachine ? hostAddress(node, ip) : undefined
  return host === undefined ? { at: ip, port: address.port || port } : { at: host, port }
}

async function answersInTime(at: string, port: number, { health, timeoutMs, gapMs, signal }: Asking): Promise<boolean> {
  for (let tried = 1; ; tried++) {
    if (await health({ address: at, port, timeoutMs, signal })) return true
    if (tried === PROBES || signal.aborted) return false
    await delay(gapMs, undefined, { signal }).catch(() => {})
  }
}

async function machineAnswers(
  node: ControlPlaneNode,
  { health, ip, port, timeoutMs, signal }: Asking,
): Promise<boolean> {
  const asked = machineAddresses(node, ip).map((address) => health({ address, port, timeoutMs, signal }))
  return (await Promise.all(asked)).some(Boolean)
}
