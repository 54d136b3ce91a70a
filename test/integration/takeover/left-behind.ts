import type { Call } from '../../../src/call.ts'
import type { KubernetesApi, PatchType } from '../../../src/kubernetes/api.ts'
import { custom, NAMESPACES, NODES, type Resource, SERVICES } from '../../../src/kubernetes/resources.ts'
import type { Json } from '../../apiserver/admin.ts'
import { nodeDefaults } from '../../apiserver/admin.ts'
import type { Case, Step } from '../../e2e/case.ts'
import { type Substitution, substitute } from '../../e2e/form/substitute.ts'
import type { HcloudSimulator } from '../../simulators/hcloud/simulator.ts'
import type { KubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'

/** One case's cluster and account. */
export interface Side {
  kubernetes: KubernetesSimulator
  api: KubernetesApi
  call: Call
  hcloud: HcloudSimulator
}

/**
 * Brings a cluster and an account to where the replaced controller left them at the end of a case: first what users did in it, with no
 * controller there, then what the recording says that the controller made of it.
 */
export async function leaveBehind(definition: Case, side: Side): Promise<void> {
  const { hcloud } = side
  hcloud.control.seed(structuredClone(definition.account ?? {}))
  for (const object of definition.objects ?? []) await create(side, object)
  for (const step of definition.steps ?? []) await play(side, step)
  const uids = uidNames(side)
  const account = substitute(definition.expect?.account ?? {}, uids)
  leaveAccount(hcloud, account)
  const objects = substitute(substitute(definition.expect?.objects ?? {}, uids), addresses(hcloud))
  for (const [name, object] of Object.entries(objects as Record<string, Json>)) leaveObject(side, name, object)
}

async function play({ hcloud, ...side }: Side, step: Step): Promise<void> {
  const world = { hcloud, ...side }
  if (step.create) return await create(world, step.create)
  if (step.apply) return await apply(world, step.apply)
  if (step.account) return hcloud.control.mutate(structuredClone(step.account))
  if (step.patch) {
    const { kind, namespace = 'default', name, type = 'merge', subresource, body } = step.patch
    const patch = { type: type as PatchType, body, ...(subresource ? { subresource: 'status' as const } : {}) }
    await side.api.patch(resourceOf(kind), { ...inNamespace(kind, namespace), name }, patch, side.call)
  }
  if (step.delete) {
    const { kind, namespace = 'default', name } = step.delete
    await side.api.delete(resourceOf(kind), { ...inNamespace(kind, namespace), name }, side.call)
  }
}

async function create({ api, call }: Side, manifest: Json): Promise<void> {
  if (manifest.kind === 'Node') {
    const { node, status } = nodeDefaults(manifest)
    await api.create(NODES, node, call)
    await api.patch(NODES, node.metadata, { type: 'merge', subresource: 'status', body: { status } }, call)
    return
  }
  const { kind, metadata, status: _, ...rest } = structuredClone(manifest)
  const at = { ...metadata, ...inNamespace(kind, metadata.namespace ?? 'default') }
  await api.create(resourceOf(kind), { ...rest, metadata: at }, call)
}

async function apply(side: Side, manifest: Json): Promise<void> {
  const { kind, metadata, ...rest } = structuredClone(manifest)
  const at = { ...inNamespace(kind, metadata.namespace ?? 'default'), name: metadata.name }
  if (!(await side.api.get(resourceOf(kind), at, side.call))) return await create(side, manifest)
  // What was applied before and is not named any more goes.
  side.kubernetes.change(
    resourceOf(kind).plural,
    at.name,
    (object) => {
      object.metadata.annotations = metadata.annotations ?? {}
      object.metadata.labels = metadata.labels ?? {}
      Object.assign(object, { spec: { ...(object.spec as object), ...rest.spec } })
    },
    at.namespace,
  )
}

const inNamespace = (kind: string, namespace: string) => (kind === 'Node' || kind === 'Namespace' ? {} : { namespace })

function resourceOf(kind: string): Resource<Json> {
  const found = [NODES, SERVICES, NAMESPACES].find((one) => one.kind === kind)
  return (found as Resource<Json> | undefined) ?? custom('', 'v1', kind, `${kind.toLowerCase()}s`, true)
}

/** The names of the recording, and what stands for them here. */
function uidNames({ kubernetes }: Side): Substitution[] {
  return kubernetes.list('services').flatMap(({ metadata: { namespace, name, uid } }): Substitution[] => [
    [`{uid ${namespace}/${name}}`, String(uid)],
    [`{lb ${namespace}/${name}}`, `a${String(uid).replaceAll('-', '')}`.slice(0, 32)],
  ])
}

/** Load balancers, certificates and routes as they were recorded, in place of what the account had of them. */
function leaveAccount({ control }: HcloudSimulator, account: Json): void {
  const present = control.state() as Json
  control.mutate({ load_balancers: present.load_balancers.map(({ id }: Json) => ({ id, delete: true })) })
  const known = new Set(present.certificates.map(({ name }: Json) => name))
  const certificates = (account.certificates ?? []).filter(({ name }: Json) => !known.has(name))
  control.seed({ certificates: certificates.map(({ status: _, ...certificate }: Json) => certificate) })
  control.mutate({
    networks: (account.networks ?? []).map(({ name, routes = [] }: Json) => ({ name, set: { routes } })),
  })
  control.seed({ load_balancers: (account.load_balancers ?? []).map(seedOf) })
  const made = control.state() as Json
  for (const { name, public_net } of account.load_balancers ?? []) {
    const { id, public_net: own } = made.load_balancers.find((one: Json) => one.name === name)
    const named = (family: 'ipv4' | 'ipv6') => {
      const pointer = public_net[`${family}_dns_ptr`]
      return pointer === 'default' ? own[family] : { ...own[family], dns_ptr: pointer }
    }
    const set = { enabled: public_net.enabled, ipv4: named('ipv4'), ipv6: named('ipv6') }
    control.mutate({ load_balancers: [{ id, set: { public_net: set } }] })
  }
}

function seedOf({ type, location, network_zone: _, algorithm, protection, public_net: __, ...balancer }: Json): Json {
  return {
    ...balancer,
    load_balancer_type: type,
    location: location.startsWith('any in') ? 'fsn1' : location,
    algorithm,
    ...(protection ? { protection: { delete: true } } : {}),
    private_net: (balancer.private_net ?? []).map(({ network, ip }: Json) =>
      ip.startsWith('{') ? { network } : { network, ip },
    ),
    services: balancer.services ?? [],
    targets: balancer.targets ?? [],
  }
}

function addresses({ control }: HcloudSimulator): Substitution[] {
  const state = control.state() as Json
  const networks = new Map<number, string>(state.networks.map(({ id, name }: Json) => [id, name]))
  return state.load_balancers.flatMap(({ name, public_net, private_net }: Json): Substitution[] => [
    [`{ipv4 of ${name}}`, public_net.ipv4.ip],
    [`{ipv6 of ${name}}`, public_net.ipv6.ip],
    ...private_net.map(
      ({ network, ip }: Json): Substitution => [`{private ip of ${name} in ${networks.get(network)}}`, ip],
    ),
  ])
}

/** Foreign to a cloud controller, so the recording does not name them. */
const OTHERS_TAINTS = /^node\.kubernetes\.io\/(not-ready|unreachable|network-unavailable|unschedulable)$/
/** As the replaced controller lists them; the recording sorts by type. */
const ORDER = ['Hostname', 'ExternalIP', 'InternalIP']

function leaveObject({ kubernetes }: Side, subject: string, recorded: Json): void {
  const [kind, ...path] = subject.split('/')
  const name = path.at(-1) ?? ''
  if (kind === 'Service')
    return void kubernetes.change(
      'services',
      name,
      (service) => {
        service.metadata.finalizers = recorded.finalizers ?? []
        service.metadata.annotations = recorded.annotations ?? {}
        Object.assign(service, { status: { loadBalancer: { ingress: recorded.ingress ?? [] } } })
      },
      path[0],
    )
  if (kind !== 'Node') return
  kubernetes.change('nodes', name, (node: Json) => {
    node.metadata.labels = recorded.labels
    node.metadata.annotations = recorded.annotations ?? {}
    node.spec.providerID = recorded.providerID
    const others = (node.spec.taints ?? []).filter(({ key }: Json) => OTHERS_TAINTS.test(key))
    node.spec.taints = [...others, ...(recorded.taints ?? [])]
    const preferred = node.metadata.annotations['alpha.kubernetes.io/provided-node-ip']
    node.status.addresses = byOrder(recorded.addresses ?? [], preferred)
    const kept = (node.status.conditions ?? []).filter(({ type }: Json) => type !== 'NetworkUnavailable')
    node.status.conditions = [...kept, ...(recorded.conditions ?? [])]
  })
}

function byOrder(all: Json[], preferred: string | undefined): Json[] {
  const first = all.filter(({ address }) => preferred?.split(',').includes(address))
  const rest = all.filter((one) => !first.includes(one))
  return [...first, ...ORDER.flatMap((type) => rest.filter((one) => one.type === type))]
}
