import { isDeepStrictEqual } from 'node:util'
import type { Call } from '../../../call.ts'
import { kindOf, messageOf, permanent, throttled, transient, WindlassError } from '../../../errors.ts'
import type { Note } from '../../provider.ts'
import type { ActionPoller } from '../actions.ts'
import { invalidFields, isBusy, isCode, isNotFound } from '../api-error.ts'
import type { Begun, HcloudClient } from '../client.ts'
import type { Action, LoadBalancer, LoadBalancerType } from '../model.ts'
import type { ActOptions } from '../transport.ts'
import type { KnownTarget, LoadBalancerChange } from './changes.ts'
import { type Creation, planCreation, targetBody } from './create.ts'
import { listenerBody } from './listeners.ts'
import { badTarget, isUnlisted, type Judgement, type Planned, removal, type Wanted } from './plan.ts'
import type { LoadBalancerReads } from './reads.ts'
import { targetId } from './targets.ts'

export interface ApplyOptions {
  client: HcloudClient
  actions: ActionPoller
  reads: LoadBalancerReads
  /** What this process has learned: whether load balancers take one action at a time. */
  pace: { oneByOne: boolean }
  /** Runs work after all work that was given before: the network takes one change at a time. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** What a list of servers, read now, says of those that are to be targets. */
  judged(wanted: Wanted, call: Call): Promise<Judgement>
}

export interface Outcome {
  lb: LoadBalancer
  notes: Note[]
  faults: Error[]
  /** Its place in the network could not be changed as asked: its addresses are not those that the Service wants. */
  misplaced?: Error
}

/** What can follow a change of the network, since private targets went with it, and refused targets. */
const MAX_ROUNDS = 3

/** Brings a load balancer that is there to what is wanted. Items fail on their own; what would make all others fail too is thrown. */
export async function applyChanges(
  wanted: Wanted,
  observed: LoadBalancer,
  plan: (wanted: Wanted, observed: LoadBalancer) => Planned,
  options: ApplyOptions,
  call: Call,
): Promise<Outcome> {
  const run = createRun(observed.id, options, call)
  let lb = observed
  let asked = wanted
  for (let round = 1; ; round++) {
    const { changes, isFull = false } = plan(asked, lb)
    const pending = changes.filter((change) => !run.failed.has(change.summary))
    const barrier = pending.findLastIndex(({ kind }) => kind === 'attach' || kind === 'detach')
    const now = barrier < 0 || round === MAX_ROUNDS ? pending : pending.slice(0, barrier + 1)
    const refusedBefore = run.refused.size
    await run.carryOut(now)
    // What is refused has left its room to those for whom there was none.
    const hasRoom = isFull && run.refused.size > refusedBefore
    if (hasRoom) asked = { ...asked, targets: asked.targets.filter(({ target }) => !run.refused.has(targetId(target))) }
    // Addresses stay where they are under everything else; and what is not found may be all of it.
    if (
      hasRoom ||
      run.lost() ||
      now.some(({ kind }) => kind === 'attach' || kind === 'detach' || kind === 'set-public-interface')
    )
      lb = await reread(lb.id, options, call)
    if (now.length === pending.length && !(hasRoom && round < MAX_ROUNDS)) break
  }
  const misplaced = run.networkFault()
  return { lb, notes: run.notes, faults: run.faults, ...(misplaced ? { misplaced } : {}) }
}

/** Takes targets away, each on its own. Throws what kept one there. */
export async function removeTargets(
  id: number,
  targets: readonly KnownTarget[],
  options: ApplyOptions,
  call: Call,
): Promise<void> {
  const run = createRun(id, options, call)
  await run.carryOut(targets.map(removal))
  for (const fault of run.faults) throw fault
}

/** Makes a load balancer, in one call if the API takes it, and returns it as it is afterwards. */
export async function createLoadBalancer(
  wanted: Wanted,
  type: LoadBalancerType,
  options: ApplyOptions,
  call: Call,
): Promise<LoadBalancer> {
  const { result, actions } = await createTolerantly(wanted, type, options, call)
  await options.reads.made(wanted.uid, result.id)
  await options.actions.wait(actions, call)
  return reread(result.id, options, call)
}

/** The whole; if a target is refused, all targets that are known to be good; if that is refused too, without targets. */
async function createTolerantly(
  wanted: Wanted,
  type: LoadBalancerType,
  options: ApplyOptions,
  call: Call,
): Promise<Begun<LoadBalancer>> {
  const create = async (body: Creation['body']) => {
    try {
      return await createWhenFree(body, options, call)
    } catch (error) {
      // Somebody made one of that name since we looked, or our own call was carried out unseen: the next look finds it.
      if (isCode(error, 'uniqueness_error'))
        throw transient(messageOf(error), { cause: error, code: 'uniqueness_error' })
      throw error
    }
  }
  const { creation } = planCreation(wanted, type)
  try {
    return await create(creation.body)
  } catch (error) {
    if (creation.targets.length === 0 || !isAboutTargets(error)) throw error
    call.log.info({ reason: messageOf(error) }, 'load balancer refused with these targets')
  }
  const judged = { ...wanted, ...(await options.judged(wanted, call)) }
  // What is neither listed nor taken is gone, for all that can be told.
  const targets = wanted.targets.filter((one) => !isUnlisted(judged, one))
  const { creation: second } = planCreation({ ...judged, targets }, type)
  if (second.targets.length > 0 && !isDeepStrictEqual(second.targets, creation.targets)) {
    try {
      return await create(second.body)
    } catch (error) {
      if (!isAboutTargets(error)) throw error
    }
  }
  return create(creation.bodyWithoutTargets)
}

/** Of many that want into one network at once, only one asks again and again; the others wait for their turn. */
async function createWhenFree(
  body: Creation['body'],
  { client, actions, inTurn }: ApplyOptions,
  call: Call,
): Promise<Begun<LoadBalancer>> {
  try {
    return await client.loadBalancers.create(body, call, { impatient: true })
  } catch (error) {
    if (!isBusy(error)) throw error
  }
  return inTurn(async () => {
    const begun = await client.loadBalancers.create(body, call)
    // Its outcome is looked at by whoever asked for it; here it only has to be over.
    await actions.wait(begun.actions, call).catch(() => undefined)
    return begun
  })
}

export function createTurns(): ApplyOptions['inTurn'] {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }
}

/** Not about the listeners, the place, the name or the account: those would be refused again. */
function isAboutTargets(error: unknown): boolean {
  if (!(error instanceof WindlassError) || error.status === undefined || error.status >= 500) return false
  if (isNotFound(error) || isCode(error, 'robot_unavailable')) return true
  // The API has many words for a target that it does not take, and may find new ones.
  if (error.kind !== 'permanent' || OTHER_CODES.has(error.code ?? '')) return false
  if (error.code !== 'invalid_input') return true
  const fields = invalidFields(error)
  return fields.length === 0 || fields.some((field) => field.startsWith('targets'))
}

const OTHER_CODES = new Set([
  'uniqueness_error',
  'resource_limit_exceeded',
  'unauthorized',
  'forbidden',
  'token_readonly',
  'json_error',
  'method_not_allowed',
])

async function reread(id: number, { reads }: ApplyOptions, call: Call): Promise<LoadBalancer> {
  const lb = await reads.byId(id, call)
  if (!lb)
    throw transient(`load balancer ${id} is gone since it was last read; the next run makes it anew`, {
      code: 'not_found',
    })
  return lb
}

interface Sent {
  change: LoadBalancerChange
  actions: Action[]
}

/**
 * Sends changes one after the other. Targets and listeners do not wait for each other's actions, except that what is taken away is gone
 * before something takes its place; everything else does.
 */
function createRun(id: number, { client, actions, pace }: ApplyOptions, call: Call) {
  const notes: Note[] = []
  const faults: Error[] = []
  /** Summaries of changes that did not work: not tried again in this run. */
  const failed = new Set<string>()
  /** Targets that the API does not take, and not for lack of room. */
  const refused = new Set<string>()
  let sent: Sent[] = []
  let networkFault: Error | undefined
  let lost = false

  function fail(change: LoadBalancerChange, error: unknown): void {
    if (isDone(change, error)) return
    if (stops(change, error)) throw error
    failed.add(change.summary)
    if (change.kind === 'add-target') {
      const full = isCode(error, 'resource_limit_exceeded')
      const { note, fault } = badTarget(change.node, codeOf(error), messageOf(error))
      notes.push(full ? { ...note, reason: 'MaxTargetsReached' } : note)
      lost ||= isNotFound(error)
      // A full load balancer works: its owner is told, and nothing is tried again.
      if (!full) refused.add(targetId(change.target))
      if (!full)
        faults.push(
          isNotFound(error) ? permanent(fault.message, { code: 'not_found', cause: error }) : withKind(fault, error),
        )
      return
    }
    const fault = error instanceof Error ? error : new Error(String(error))
    faults.push(fault)
    if (change.kind === 'attach' || change.kind === 'detach') networkFault ??= fault
  }

  async function settle(): Promise<void> {
    const waiting = sent
    sent = []
    const results = await Promise.allSettled(waiting.map((one) => actions.wait(one.actions, call)))
    for (const [i, result] of results.entries()) {
      const change = waiting[i]?.change
      if (result.status === 'rejected' && change) fail(change, result.reason)
    }
  }

  async function carryOut(changes: readonly LoadBalancerChange[]): Promise<void> {
    let removed = new Set<string>()
    for (const change of changes) {
      const alone = !TOGETHER.has(change.kind)
      if (alone || (removed.size > 0 && change.kind.startsWith('add-'))) {
        await settle()
        removed = new Set()
      }
      if (networkFault && needsNetwork(change)) continue
      if (change.kind.startsWith('remove-') || change.kind.startsWith('delete-')) removed.add(change.summary)
      try {
        const begun = await sendInTurn(change)
        sent.push({ change, actions: begun.actions })
      } catch (error) {
        fail(change, error)
      }
      if (alone || pace.oneByOne) await settle()
    }
    await settle()
  }

  /** The first refusal for another action tells that this load balancer takes one at a time. */
  async function sendInTurn(change: LoadBalancerChange): Promise<Begun> {
    if (sent.length === 0) return send(change)
    try {
      return await send(change, { impatient: true })
    } catch (error) {
      if (!isBusy(error)) throw error
      pace.oneByOne = true
      await settle()
      return send(change)
    }
  }

  async function send(change: LoadBalancerChange, how: ActOptions = {}): Promise<Begun> {
    const lbs = client.loadBalancers
    switch (change.kind) {
      case 'update-metadata': {
        const { name, labels } = change
        await lbs.update(id, { ...(name === undefined ? {} : { name }), ...(labels ? { labels } : {}) }, call)
        return { result: undefined, actions: [] }
      }
      case 'change-dns-ptr':
        return lbs.changeDnsPtr(id, change.ip, change.dnsPtr, call)
      case 'change-algorithm':
        return lbs.changeAlgorithm(id, change.algorithm, call)
      case 'change-type':
        return lbs.changeType(id, change.type, call)
      case 'attach': {
        const { network, ip, ipRange } = change
        return lbs.attach(id, { network, ...(ip ? { ip } : {}), ...(ipRange ? { ip_range: ipRange } : {}) }, call)
      }
      case 'detach':
        return lbs.detach(id, change.network, call)
      case 'set-public-interface':
        return lbs.setPublicInterface(id, change.enabled, call)
      case 'add-listener':
        return lbs.addService(id, listenerBody(change.listener), call, how)
      case 'update-listener':
        return lbs.updateService(id, listenerBody(change.listener, change.observed), call, how)
      case 'delete-listener':
        return lbs.deleteService(id, change.listener.listenPort, call, how)
      case 'add-target':
        return lbs.addTarget(id, targetBody(change.target), call, how)
      case 'remove-target': {
        const { use_private_ip: _, ...body } = targetBody(change.target)
        return lbs.removeTarget(id, body, call, how)
      }
      default:
        throw new TypeError(`${change.kind} is no change of a load balancer that is there`)
    }
  }

  return { carryOut, notes, faults, failed, refused, networkFault: () => networkFault, lost: () => lost }
}

const TOGETHER = new Set<LoadBalancerChange['kind']>([
  'add-target',
  'remove-target',
  'add-listener',
  'update-listener',
  'delete-listener',
])

/** What was to be done is done already, by a run that was cut off or by the cloud itself. */
function isDone(change: LoadBalancerChange, error: unknown): boolean {
  switch (change.kind) {
    case 'add-target':
      return isCode(error, 'target_already_defined', 'server_already_added')
    case 'remove-target':
      return isNotFound(error) || isCode(error, 'load_balancer_target_not_found', 'target_not_found', 'invalid_input')
    case 'delete-listener':
      return isNotFound(error) || isCode(error, 'service_not_found')
    case 'attach':
      return isCode(error, 'load_balancer_already_attached')
    case 'detach':
      return isCode(error, 'load_balancer_not_attached_to_network')
    default:
      return false
  }
}

/** What no other item of this load balancer would fare better with. */
function stops(change: LoadBalancerChange, error: unknown): boolean {
  const kind = kindOf(error)
  if (kind === 'aborted' || kind === 'throttled') return true
  if (!(error instanceof WindlassError)) return true
  if (error.status === 401 || error.code === 'token_readonly' || error.code === 'forbidden') return true
  // A target's server may be gone; of everything else the load balancer itself is.
  if (isNotFound(error)) return change.kind !== 'add-target'
  return kind === 'transient' && (error.code === undefined || (error.status ?? 0) >= 500)
}

function needsNetwork(change: LoadBalancerChange): boolean {
  if (change.kind === 'attach') return true
  if (change.kind === 'set-public-interface') return !change.enabled
  if (change.kind === 'add-target') return change.target.type === 'ip' || change.target.usePrivateIp
  return change.kind === 'remove-target'
}

function codeOf(error: unknown): string {
  return error instanceof WindlassError ? (error.code ?? 'refused') : 'refused'
}

function withKind(fault: WindlassError, cause: unknown): WindlassError {
  const options = { cause, ...(fault.code ? { code: fault.code } : {}) }
  return kindOf(cause) === 'permanent' && fault.code !== 'server_not_attached_to_network'
    ? permanent(fault.message, options)
    : transient(fault.message, options)
}

/** For a certificate that is being issued: nothing to do but to come back. */
export function comeBack(message: string, afterMs: number): WindlassError {
  return throttled(message, Date.now() + afterMs, { code: 'certificate_pending' })
}
