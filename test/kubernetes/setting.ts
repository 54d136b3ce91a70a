import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Call } from '../../src/call.ts'
import { WindlassError } from '../../src/errors.ts'
import { createKubernetesApi, type RequestSeen } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import type { Rule } from '../simulators/kubernetes/access.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

export const silent = createLogger({ level: 'silent' })

/** A call that any write may be part of, and the writes that asked. */
export function aCall(): Call & { writes: string[] } {
  const writes: string[] = []
  return {
    signal: new AbortController().signal,
    urgency: 'user',
    log: silent,
    writes,
    beforeWrite: async (what) => {
      writes.push(what)
    },
  }
}

/** A simulated API server, and a connection to it from a kubeconfig file. */
export async function setUp(t: Test, options: { rules?: Rule[] } = {}) {
  const simulator = await startKubernetesSimulator()
  t.teardown(() => simulator.close())
  const text = options.rules ? simulator.kubeconfigFor('windlass', options.rules) : simulator.kubeconfig
  const path = join(t.testdir(), 'config')
  writeFileSync(path, text)
  const connection = await connect({ kubeconfig: [path] }, silent)
  t.teardown(() => connection.close())
  const seen: RequestSeen[] = []
  const api = createKubernetesApi(connection, { onRequest: (request) => seen.push(request) })
  return { simulator, connection, api, seen, call: aCall() }
}

/** Resolves as soon as the condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** What the work failed with; undefined when it did not. */
export async function failure(work: Promise<unknown>): Promise<WindlassError | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    if (error instanceof WindlassError) return error
    throw error
  }
}
