import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { messageOf } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { KubeNode, KubeService } from '../../kubernetes/objects.ts'
import { custom, ENDPOINT_SLICES, type KubeEndpointSlice, NODES } from '../../kubernetes/resources.ts'
import type { ControlPlaneNode } from './decide.ts'

const ROLES = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']
export const SERVICE_NAME = 'kubernetes.io/service-name'

/** A Service with all of its ports: projections have no target ports. */
export interface WholeService extends Pick<KubeService, 'metadata' | 'status'> {
  spec: Omit<KubeService['spec'], 'ports'> & {
    ports?: { name?: string; port: number; protocol?: string; targetPort?: number | string }[]
    selector?: Record<string, string>
  }
}

export const WHOLE_SERVICES = custom<WholeService>('', 'v1', 'Service', 'services', true)

/** What is known of the control plane; it outlives the API server, and the process that read it. */
export interface ControlPlane {
  nodes: ControlPlaneNode[]
  /** Of the API server at its machines. */
  port?: number
  /** Provider ids of machines that are, or were, among the nodes. */
  known: string[]
}

export interface ControlPlaneReading {
  controlPlane: ControlPlane
  /** Where the API servers are, as the cluster says now; undefined when it does not answer. */
  slices?: KubeEndpointSlice[]
}

export const NOTHING_KNOWN: ControlPlane = { nodes: [], known: [] }

/** So many machines are remembered that are nodes no more. */
const MOST_KNOWN = 50

/** Reads the control plane from Kubernetes, or, while that does not answer, from memory and Redis. */
export function createControlPlane(kubernetes: KubernetesApi, redis: Redis, key: string) {
  let last: ControlPlane | undefined
  let stored = ''

  async function remembered(): Promise<ControlPlane> {
    const text = last ? null : await redis.get(key).catch(() => null)
    return last ?? (text === null ? NOTHING_KNOWN : (JSON.parse(text) as ControlPlane))
  }

  async function remember(controlPlane: ControlPlane): Promise<void> {
    last = controlPlane
    const text = JSON.stringify(controlPlane)
    if (text === stored) return
    await redis.set(key, text).then(
      () => {
        stored = text
      },
      () => undefined,
    )
  }

  async function read(call: Call): Promise<ControlPlaneReading> {
    const before = await remembered()
    try {
      const reading = await readControlPlane(kubernetes, before, call)
      await remember(reading.controlPlane)
      return reading
    } catch (error) {
      if (call.signal.aborted) throw error
      call.log.warn({ error: messageOf(error) }, 'the control plane is looked after without Kubernetes')
      return { controlPlane: before }
    }
  }

  return {
    read,
    /** The same, or what is known when that takes longer: the way to Kubernetes may be just what has failed. */
    async readWithin(patienceMs: number, call: Call): Promise<ControlPlaneReading> {
      const impatient = new AbortController()
      try {
        return await Promise.race([
          read(call),
          delay(patienceMs, undefined, { signal: impatient.signal }).then(async () => ({
            controlPlane: await remembered(),
          })),
        ])
      } finally {
        impatient.abort()
      }
    },
  }
}

/** What Kubernetes says of it, and of `before` what it does not say any more. */
export async function readControlPlane(
  kubernetes: KubernetesApi,
  before: ControlPlane,
  call: Call,
): Promise<Required<ControlPlaneReading>> {
  const lists = await Promise.all(
    ROLES.map((labelSelector) => kubernetes.list(NODES, { labelSelector, project: controlPlaneNode }, call)),
  )
  const nodes = [...new Map(lists.flatMap(({ items }) => items).map((node) => [node.name, node])).values()]
  const [service, { items: slices }] = await Promise.all([
    kubernetes.get(WHOLE_SERVICES, { namespace: 'default', name: 'kubernetes' }, call),
    kubernetes.list(ENDPOINT_SLICES, { namespace: 'default', labelSelector: `${SERVICE_NAME}=kubernetes` }, call),
  ])
  const port = portOf(service, slices) ?? before.port
  const present = nodes.flatMap(({ providerId }) => (providerId === undefined ? [] : [providerId]))
  const known = [...new Set([...before.known.filter((id) => !present.includes(id)), ...present])]
  const controlPlane = { nodes, ...(port === undefined ? {} : { port }), known: known.slice(-MOST_KNOWN) }
  return { controlPlane, slices }
}

function controlPlaneNode({ metadata, spec, status }: KubeNode): ControlPlaneNode {
  return {
    name: metadata.name,
    uid: metadata.uid,
    ...(spec?.providerID ? { providerId: spec.providerID } : {}),
    addresses: status?.addresses ?? [],
    unschedulable: spec?.unschedulable === true,
    deleting: metadata.deletionTimestamp !== undefined,
  }
}

/** A port by name is the one that the endpoints have. */
function portOf(service: WholeService | undefined, slices: readonly KubeEndpointSlice[]): number | undefined {
  const target = service?.spec.ports?.[0]?.targetPort
  if (typeof target === 'number' && target > 0) return target
  return slices.flatMap(({ ports }) => ports ?? []).find(({ port }) => port !== undefined)?.port
}
