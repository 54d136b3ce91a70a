import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from '../apiserver/admin.ts'
import { ignoreMissing, namespaceOf } from '../apiserver/admin.ts'
import type { Case, Result, Settle, Step, World } from './case.ts'
import type { SimulatedCloud } from './clouds/cloud.ts'
import { startCloud } from './clouds/start.ts'
import { applyObject, createObject, mirrorEndpoints } from './cluster.ts'
import { type Controller, startController } from './controller.ts'
import { normalEvents } from './form/objects.ts'
import type { Reaper } from './reaper.ts'
import { type Pace, settle, until, type Watched } from './watch.ts'
import { rememberServices, type ServiceUids, worldNow } from './world.ts'

export interface RunOptions {
  definition: Case
  /** For logs and files of this case; made if missing. */
  dir: string
  admin: Admin
  url: string
  /** Path; a cloud may give the controller another one. */
  kubeconfig: string
  /** Of the controller: what it needs beside the cloud's variables. */
  env: Record<string, string>
  command?: string
  pace: Pace
  reaper: Reaper
  verbose: boolean
}

export interface Outcome {
  result: Result
  /** What was awaited in vain. */
  faults: string[]
}

/** Plays one case on a clean cluster and says what came of it. */
export async function runCase(options: RunOptions): Promise<Outcome> {
  const { definition, dir, admin, url, kubeconfig } = options
  mkdirSync(dir, { recursive: true })
  const cloud = await startCloud({ definition, dir, admin, url, kubeconfig })
  const play = new Play(options, cloud)
  try {
    await cloud.seed(definition.account ?? {})
    return await play.run()
  } finally {
    await play.stop('SIGTERM')
    const requests = await cloud.requestLog()
    writeFileSync(join(dir, 'requests.jsonl'), requests.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
    await cloud.stop()
  }
}

/** After these steps the world is at rest already, or is meant as it is. */
const settledSteps = new Set(['settle', 'checkpoint', 'restart', 'start', 'stop', 'kill'])

class Play {
  readonly #options: RunOptions
  readonly #cloud: SimulatedCloud
  readonly #uids: ServiceUids = new Map()
  readonly #checkpoints: Record<string, World> = {}
  readonly #faults: string[] = []
  #controller: Controller | undefined
  #requestsAtStart = 0

  constructor(options: RunOptions, cloud: SimulatedCloud) {
    this.#options = options
    this.#cloud = cloud
  }

  async run(): Promise<Outcome> {
    const { definition, admin } = this.#options
    const steps = definition.steps ?? []
    for (const object of definition.objects ?? []) await createObject(admin, object)
    await rememberServices(admin, this.#uids)
    if (definition.start !== false) {
      await this.#start()
      await this.#settle({ waitFirst: true, ...definition.first_settle })
    }
    for (const step of steps) await this.#step(step)
    if (!settledSteps.has(verbOf(steps.at(-1) ?? { settle: null }))) await this.#settle({})

    const controller = this.#controller
    const result: Result = {
      controller: controller && (controller.exit === undefined ? { running: true } : { exit: controller.exit }),
      ...(await worldNow(admin, this.#cloud, this.#uids)),
      events: normalEvents(await admin.list('Event')),
      checkpoints: this.#checkpoints,
    }
    return { result, faults: this.#faults }
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#controller?.stop(signal)
  }

  async #start(): Promise<void> {
    const { definition, dir, env, kubeconfig, command, reaper } = this.#options
    this.#requestsAtStart = (await this.#cloud.activity()).requests
    this.#controller = startController({
      definition,
      command,
      env: { KUBECONFIG: kubeconfig, ...env, ...this.#cloud.env() },
      logFile: join(dir, 'controller.log'),
      reaper,
      log: (line) => this.#log(line),
    })
  }

  async #step(step: Step): Promise<void> {
    const { admin } = this.#options
    const cloud = this.#cloud
    this.#log(`step ${JSON.stringify(step).slice(0, 300)}`)
    switch (verbOf(step)) {
      case 'apply':
        await applyObject(admin, step.apply)
        return await rememberServices(admin, this.#uids)
      case 'create':
        await createObject(admin, step.create)
        return await rememberServices(admin, this.#uids)
      case 'patch':
        return await this.#patch(step.patch)
      case 'delete':
        return await this.#delete(step.delete)
      case 'account':
        return await cloud.mutate(step.account)
      case 'fault':
        return await cloud.fault(step.fault)
      case 'settle':
        return await this.#settle(step.settle ?? {})
      case 'until':
        return this.#note(await until(this.#watched(), step.until ?? {}, this.#options.pace))
      case 'sleep':
        return await delay((step.sleep ?? 0) * 1000)
      case 'checkpoint':
        await this.#settle(step.settle ?? {})
        this.#checkpoints[step.checkpoint ?? ''] = await worldNow(admin, cloud, this.#uids)
        return
      case 'restart':
        await this.stop('SIGKILL')
        await this.#start()
        return await this.#settle({ waitFirst: true, ...step.settle })
      case 'start':
        await this.#start()
        return await this.#settle({ waitFirst: true, ...step.settle })
      case 'kill':
        return await this.stop('SIGKILL')
      case 'stop':
        return await this.stop('SIGTERM')
      default:
        throw new Error(`unknown step ${JSON.stringify(step)}`)
    }
  }

  async #patch(patch: Step['patch']): Promise<void> {
    if (!patch) return
    const { admin } = this.#options
    const namespace = namespaceOf(patch.kind, patch.namespace)
    await admin.patch(patch.kind, namespace, patch.name, patch.body, patch.type, patch.subresource)
    await mirrorEndpoints(admin, patch.kind, namespace, patch.name)
  }

  async #delete(wanted: Step['delete']): Promise<void> {
    if (!wanted) return
    const { kind, namespace, name, mayBeGone } = wanted
    const deleted = this.#options.admin.delete(kind, namespaceOf(kind, namespace), name)
    await (mayBeGone ? deleted.catch(ignoreMissing) : deleted)
  }

  async #settle(limits: Settle & { waitFirst?: boolean }): Promise<void> {
    const defaults = this.#options.definition.settle
    const fault = await settle(
      this.#watched(),
      { ...defaults, ...limits, product: limits.product ?? defaults?.product },
      this.#options.pace,
    )
    if (!this.#options.definition.never_settles) this.#note(fault)
  }

  #watched(): Watched {
    return {
      admin: this.#options.admin,
      cloud: this.#cloud,
      controller: this.#controller,
      requestsAtStart: this.#requestsAtStart,
      log: (line) => this.#log(line),
    }
  }

  #note(fault: string | undefined): void {
    if (fault) this.#faults.push(fault)
  }

  #log(message: string): void {
    const { definition, dir, verbose } = this.#options
    const line = `${new Date().toISOString().slice(11, 23)} ${message}`
    appendFileSync(join(dir, 'runner.log'), `${line}\n`)
    if (verbose) console.log(`[${definition.id}] ${line}`)
  }
}

/** The first key of a step. */
function verbOf(step: Step): string {
  return Object.keys(step)[0] ?? ''
}
