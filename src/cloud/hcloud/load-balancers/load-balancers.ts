import type { Redis } from 'ioredis'
import type { Call } from '../../../call.ts'
import { matches } from '../../../config/selector.ts'
import type { HcloudSettings } from '../../../config/types.ts'
import { kindOf, messageOf, transient } from '../../../errors.ts'
import type { Applied, LoadBalancers, Note } from '../../provider.ts'
import type { RobotServers } from '../../robot/servers.ts'
import type { ActionPoller } from '../actions.ts'
import { isCode, isNotFound } from '../api-error.ts'
import type { HcloudClient } from '../client.ts'
import type { LoadBalancer } from '../model.ts'
import type { ConfiguredNetwork } from '../network.ts'
import type { Servers } from '../servers.ts'
import { ANNOTATIONS, PREFIX } from './annotations.ts'
import { type ApplyOptions, applyChanges, comeBack, createLoadBalancer, createTurns, removeTargets } from './apply.ts'
import { type CertificatePlan, deleteCertificate, ownCertificates } from './certificates.ts'
import type { LoadBalancerChange } from './changes.ts'
import { RELEASED_LABEL } from './names.ts'
import { findForDeletion } from './observe.ts'
import { createPlaces } from './places.ts'
import { planLoadBalancer, planOnlyTargets, type Wanted } from './plan.ts'
import {
  createPlanner,
  desireOptionsOf,
  type HcloudPlan,
  invalid,
  judge,
  required,
  withCertificates,
} from './planner.ts'
import { listPossessions } from './possessions.ts'
import { createLoadBalancerReads } from './reads.ts'
import { ingressOf } from './status.ts'
import { targetsKey, wantedTargets } from './targets.ts'
import { createLoadBalancerTypes } from './types.ts'

export interface LoadBalancersOptions {
  client: HcloudClient
  actions: ActionPoller
  servers: Servers
  network: ConfiguredNetwork
  settings: HcloudSettings
  robot?: RobotServers
  onlyPlans: boolean
  redis?: Redis
  prefix: string
}

const CERTIFICATE_PENDING_MS = 5000

export function createLoadBalancers(options: LoadBalancersOptions): LoadBalancers {
  const { client, actions, servers, network, settings, robot } = options
  const reads = createLoadBalancerReads(options)
  const types = createLoadBalancerTypes(options)
  const desireOptions = desireOptionsOf(settings)
  const applyOptions: ApplyOptions = {
    client,
    actions,
    reads,
    pace: { oneByOne: false },
    inTurn: createTurns(),
    judged: async (one, call) => judge(one, await servers.list(call, { fresh: true })),
  }
  const plan = createPlanner(
    {
      reads,
      types,
      servers,
      network,
      ...(robot ? { robot } : {}),
      ...(options.onlyPlans ? { places: createPlaces(client) } : {}),
    },
    desireOptions,
  )

  return {
    plan,

    async apply(given, call): Promise<Applied> {
      const { context } = given as HcloudPlan
      if (!context) throw new TypeError('this plan was not made by hcloud load balancers')
      const { desired, certificates } = context
      const ids = await ensureCertificates(certificates, context.observed, call)
      const wanted: Wanted = { ...context.wanted, listeners: withCertificates(context.wanted.listeners, ids) }
      const observed =
        context.observed ?? (await createLoadBalancer(wanted, required(context.type), applyOptions, call))
      const replan = context.onlyTargets ? planOnlyTargets : planLoadBalancer
      const outcome = await applyChanges(wanted, observed, replan, applyOptions, call)
      // Without its place in the network it does not have the addresses that were asked for: none are published.
      if (outcome.misplaced) throw outcome.misplaced
      const faults: Error[] = [...(given.faults ?? []), ...outcome.faults]
      if (faults.length === 0) faults.push(...(await deleteCertificates(certificates.after, call)))
      return {
        ingress: context.onlyTargets?.ingress ?? ingressOf(outcome.lb, desired.ingress),
        notes: outcome.notes,
        faults,
      }
    },

    async planDeletion(service, call): Promise<HcloudPlan> {
      const { lb, leftBehind } = await findForDeletion(service, reads, call)
      const own = ownCertificates(service.uid, await reads.certificates(call))
      const changes: LoadBalancerChange[] = []
      const notes: Note[] = []
      if (leftBehind)
        notes.push({
          type: 'Warning',
          reason: 'LoadBalancerLeftBehind',
          message: `load balancer "${leftBehind.name}" (${leftBehind.id}) stays: it has the name in annotation ${PREFIX}name, but no label that says that it was this Service's`,
        })
      if (lb?.deleteProtected) {
        notes.push({
          type: 'Warning',
          reason: 'LoadBalancerProtected',
          message: `load balancer "${lb.name}" (${lb.id}) is protected against deletion and stays; a Service with annotation ${PREFIX}name "${lb.name}" takes it over`,
        })
        // Its listeners lead to node ports that Kubernetes gives to other Services next.
        const targets = lb.targets.filter((target) => target.type !== 'other')
        if (lb.labels[RELEASED_LABEL] === undefined || targets.length > 0)
          changes.push({
            kind: 'release-load-balancer',
            summary: `leave the protected load balancer "${lb.name}" to whoever adopts it, without its ${targets.length} targets`,
            id: lb.id,
            labels: { ...lb.labels, [RELEASED_LABEL]: 'true' },
            targets,
          })
        return { changes, notes }
      }
      if (lb)
        changes.push({
          kind: 'delete-load-balancer',
          summary: `delete load balancer "${lb.name}" (${lb.id})`,
          id: lb.id,
        })
      for (const certificate of own) {
        const users = certificate.usedBy.filter(({ id }) => id !== lb?.id)
        if (users.length === 0) changes.push(deleteCertificate(certificate))
        else
          notes.push({
            type: 'Warning',
            reason: 'CertificateLeftBehind',
            message: `managed certificate "${certificate.name}" stays: ${users.map(({ type, id }) => `${type} ${id}`).join(', ')} still uses it`,
          })
      }
      return { changes, notes, unmarked: lb === undefined }
    },

    async applyDeletion(plan, call) {
      for (const change of plan.changes as readonly LoadBalancerChange[]) {
        try {
          if (change.kind === 'delete-load-balancer') await client.loadBalancers.delete(change.id, call)
          if (change.kind === 'release-load-balancer') {
            await removeTargets(change.id, change.targets, applyOptions, call)
            await client.loadBalancers.update(change.id, { labels: change.labels }, call)
          }
          if (change.kind === 'delete-certificate') await client.certificates.delete(change.id, call)
        } catch (error) {
          // Protected since it was looked at: the next look leaves it.
          if (isCode(error, 'protected')) throw transient(messageOf(error), { cause: error, code: 'protected' })
          if (!isNotFound(error)) throw error
        }
      }
      return { notes: [] }
    },

    possessions: (nodes, call) => listPossessions(client, nodes, call),

    targetsKey(service, nodes) {
      const parsed = ANNOTATIONS['node-selector'].kind.parse(service.annotations[`${PREFIX}node-selector`] ?? '')
      if ('fault' in parsed)
        throw invalid(service, [
          `annotation ${PREFIX}node-selector: "${service.annotations[`${PREFIX}node-selector`]}" ${parsed.fault}`,
        ])
      const asked = service.annotations[`${PREFIX}use-private-ip`]
      const bool = asked === undefined ? undefined : ANNOTATIONS['use-private-ip'].kind.parse(asked)
      // A bool that doesn't parse stops the plan; which targets it would ask for does not matter.
      const usePrivateIp = bool && 'value' in bool ? bool.value : settings.loadBalancers.usePrivateIp
      const selected = nodes.filter((node) => matches(parsed.value, node.labels))
      return targetsKey(
        wantedTargets(selected, { usePrivateIp, robotEnabled: desireOptions.robotEnabled }).targets,
        usePrivateIp,
      )
    },
  }

  async function ensureCertificates(
    certificates: CertificatePlan,
    observed: LoadBalancer | undefined,
    call: Call,
  ): Promise<number[]> {
    const { pending } = certificates
    const inUse = pending && observed?.listeners.some(({ http }) => http?.certificates.includes(pending.id))
    if (pending && !inUse)
      throw comeBack(
        `managed certificate "${pending.name}" is being issued; looking again soon`,
        CERTIFICATE_PENDING_MS,
      )
    const ids = [...certificates.ids]
    for (const { name, domains, labels } of certificates.before) {
      const begun = await createCertificate({ name, domainNames: domains, labels }, call)
      // One that can't be issued is used all the same, as soon as its failure is known: the next plan says so.
      await actions.wait(begun.actions, call)
      ids.push(begun.result.id)
    }
    return ids
  }

  async function createCertificate(certificate: Parameters<HcloudClient['certificates']['create']>[0], call: Call) {
    try {
      return await client.certificates.create(certificate, call)
    } catch (error) {
      // Our own call was carried out unseen, or somebody was quicker: the next look finds it and says whose it is.
      if (isCode(error, 'uniqueness_error'))
        throw transient(messageOf(error), { cause: error, code: 'uniqueness_error' })
      throw error
    }
  }

  async function deleteCertificates(changes: CertificatePlan['after'], call: Call): Promise<Error[]> {
    const faults: Error[] = []
    for (const { id } of changes) {
      try {
        await client.certificates.delete(id, call)
      } catch (error) {
        if (kindOf(error) === 'aborted' || kindOf(error) === 'throttled') throw error
        if (!isNotFound(error) && !isCode(error, 'resource_in_use')) faults.push(error as Error)
      }
    }
    return faults
  }
}
