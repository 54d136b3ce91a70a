import type { Call } from '../call.ts'
import type { LoadBalancerIngress, NodeProjection, ServiceProjection } from '../events/projection.ts'
import type { KubeObject, NodeAddress } from '../kubernetes/objects.ts'

/**
 * What Windlass asks of a cloud, in the terms of the cloud controller framework. Optional abilities are optional members.
 * Every method throws `WindlassError`: an error is never an answer, and never "not found".
 */
export interface CloudProvider {
  /** As in `--cloud-provider`: `hcloud`, `cherryservers`. */
  readonly name: string
  /** True for provider ids in one of this cloud's forms, well-formed or not: whose node it is. */
  owns(providerId: string): boolean
  /**
   * Names the credential in use now without saying it: another token, another id. What was seen by one credential is no proof for another.
   * For a provider id of Robot it is Robot's.
   */
  credentialId(providerId: string): string
  /**
   * `credentialId` of the credential that is good for the project: in another project, the same names are other people's things, and
   * what is ours is not there.
   */
  projectCredential(): string
  /** The credential shows machines of other projects too, by their ids: only a list tells whether the settings name the right one. */
  readonly findsBeyondProject?: boolean
  /** First contact: one cheap read. Throws `permanent` for a refused credential, `transient` when there was no answer. */
  check(call: Call): Promise<void>
  readonly instances: Instances
  readonly loadBalancers?: LoadBalancers
  readonly routes?: Routes
  readonly controlPlaneAddress?: ControlPlaneAddress
  /** True for a Service that this cloud's own work makes: no load balancer is made for it, at no cloud. */
  keepsOff?(service: { namespace: string; name: string }): boolean
  close(): Promise<void>
}

/** Something a user should read on an object: becomes a Kubernetes Event. */
export interface Note {
  type: 'Normal' | 'Warning'
  reason: string
  message: string
  /** The Node that it is about, by name; the object being reconciled if absent. */
  node?: string
}

export interface Instance {
  providerId: string
  /** Name at the cloud. */
  name: string
  /** In the order in which the node shall list them. Without a `Hostname` entry the node keeps its own; none at all says nothing yet. */
  addresses: NodeAddress[]
  /** Types of address on which the cloud says nothing: an initialised node keeps those that it has. */
  silentOn?: readonly string[]
  /** This and the next two in the cloud's own words, which need not be values that a label can have. */
  instanceType?: string
  region?: string
  zone?: string
  /** Why its addresses can't be told: a node that waits for them is not initialised, and another one keeps those that it has. */
  fault?: { reason: string; message: string }
  /** Set at initialisation when absent, never overwritten. */
  additionalLabels: Record<string, string>
  /** True when the machine is switched off. Undefined when the lookup did not ask (see `power`). */
  off?: boolean
}

export type InstanceLookup =
  | { kind: 'found'; instance: Instance; notes: Note[] }
  /** `searched` says what was looked for and where, `nearest` the most similar name there, for the Event on the node. */
  | { kind: 'not-found'; searched: string; nearest?: string; notes: Note[] }
  /** More than one machine answers to it: never guess. */
  | { kind: 'ambiguous'; message: string; notes: Note[] }

export interface Instances {
  /**
   * The machine behind a node: by its provider id, or by name if it has none. `fresh` asks for a read that began after this call
   * (before something is destroyed); otherwise shared reads of a few seconds' age serve. `addresses` of the node are read (Robot forwards them).
   */
  find(node: NodeProjection, call: Call, options?: { fresh?: boolean }): Promise<InstanceLookup>
  /** How old what `find` says of a machine may be if no fresh read is asked for. */
  maxAgeMs(providerId: string): number
  /** True when the machine is switched off: asked of the cloud now, or within the last minute where requests are few. */
  isOff(instance: Instance, call: Call): Promise<boolean>
  /** How many machines this credential sees now: the witness of promise 5 asks whether it sees others of this cluster. */
  listProviderIds(call: Call, options?: { fresh?: boolean }): Promise<ReadonlySet<string>>
}

/** One step of a plan. `summary` is for people; the rest is data of the cloud that made the plan. */
export interface Change {
  readonly kind: string
  readonly summary: string
  /** True when it takes a target away: then the node set behind the plan must have been read afresh. */
  readonly withdraws?: boolean
}

/** What observe, desire and plan came to for one Service. */
export interface LoadBalancerPlan {
  /** Ordered so that traffic is never without targets. Empty: the cloud is as the Service wants it, and nothing is sent. */
  readonly changes: readonly Change[]
  /** For the Service or its nodes: what is odd but does not stop the plan. */
  readonly notes: readonly Note[]
  /** What can't be had, while the changes can: carrying the plan out ends in these too. */
  readonly faults?: readonly Error[]
  /** What the status is to list, where that can be told before the changes are made. */
  readonly ingress?: readonly LoadBalancerIngress[]
  /** The half in the cluster, as far as it can be told before the changes are made. Of a deletion: what is withdrawn before them. */
  readonly announcement?: Announcement
  /** Of a deletion: addresses that go with it. A status that shows one is not somebody else's. */
  readonly addresses?: readonly string[]
}

/** A plan that began with a look for the Service's load balancer. */
export interface SoughtPlan extends LoadBalancerPlan {
  /** Nothing at the cloud is marked as this Service's: it has nothing there, or this is not the project that has it. */
  readonly unmarked?: boolean
}

/** How a load balancer is announced inside the cluster, for clouds where that is half of it. Desired state: the controller brings it about. */
export interface Announcement {
  /** Annotations of the Service that are the cloud's to set; null takes one away. Those not named are left alone. */
  readonly serviceAnnotations: Readonly<Record<string, string | null>>
  /** What has to be known before the rest can be planned, read afresh and in this order. */
  readonly queries: readonly ObjectQuery[]
  /** Pure. `observed[i]` is what `queries[i]` found; undefined when the cluster has no such kind. */
  plan(observed: readonly (readonly KubeObject[] | undefined)[]): AnnouncementPlan
}

export interface AnnouncementPlan {
  readonly changes: readonly ObjectChange[]
  /** Why the address is not announced even when all changes are made. */
  readonly fault?: Error
}

/** Where the API keeps objects of one kind. `group` is empty for the core. */
export interface ObjectKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
}

export interface ObjectQuery {
  readonly kind: ObjectKind
  readonly namespace?: string
  readonly labelSelector?: string
}

/** One change to one object of the cluster, bound to the version that was observed. */
export type ObjectChange = {
  readonly summary: string
  readonly object: ObjectKind
  readonly namespace?: string
  readonly name: string
  /** Without it the load balancer does not work at all: its failure keeps the status from being written. */
  readonly essential: boolean
} & (
  | { readonly action: 'create'; readonly labels: Record<string, string>; readonly spec: unknown }
  /** A JSON merge patch; uid and resourceVersion are in it. */
  | { readonly action: 'patch'; readonly body: unknown }
  | { readonly action: 'delete'; readonly uid: string; readonly resourceVersion: string }
)

export interface Applied {
  /** The address entries for `status.loadBalancer.ingress`, in order, ipMode included. */
  ingress: LoadBalancerIngress[]
  notes: Note[]
  /** What went wrong with single items while all others were brought to their state; the run fails with these after the status is written. */
  faults: Error[]
  /** The half in the cluster, to be brought about before the status is written. */
  announcement?: Announcement
  /** Something may turn up late, and no event will say so: look again after this time. */
  againMs?: number
  /** For `applyDeletion`, once cluster and status have turned away from it: what this Service has and has no more use for. */
  superseded?(call: Call): Promise<LoadBalancerPlan>
}

/** Something that was made, or taken over, for a Service, and says so by its labels or tags. */
export interface Possession {
  /** What it is, by name and id. */
  readonly what: string
  /** How its user removes it, once nobody needs it. */
  readonly howToRemove: string
  /** It is of this cluster, and not of another one that uses the same project. */
  readonly ofThisCluster: boolean
  belongsTo(service: Pick<ServiceProjection, 'namespace' | 'name' | 'uid'>): boolean
}

/** Load balancers of a cloud, one per Service. */
export interface LoadBalancers {
  /** Announced inside the cluster: what is withdrawn there can't be told from a plan, so nodes are always read afresh. */
  readonly inCluster?: boolean
  /** The Service asks to be left alone. What was made for it before is cleaned up. */
  declines?(service: Pick<ServiceProjection, 'annotations'>): boolean
  /**
   * Observe and plan. Pure of effects at the cloud. Throws one `permanent` error that lists all faults of the Service's annotations
   * before anything is created. `nodes` are those eligible by the framework's rules; the cloud applies its own selector.
   */
  plan(service: ServiceProjection, nodes: readonly NodeProjection[], call: Call): Promise<SoughtPlan>
  /** Carries a plan out, then reads what came of it. Safe to repeat from any point. */
  apply(plan: LoadBalancerPlan, call: Call): Promise<Applied>
  /** What deletion of this Service's load balancer takes; parses no annotation. Empty changes: nothing of ours is there. */
  planDeletion(service: ServiceIdentity, call: Call): Promise<SoughtPlan>
  applyDeletion(plan: LoadBalancerPlan, call: Call): Promise<{ notes: Note[] }>
  /** All that is there for Services of any name: what belongs to none of them was left behind. `nodes` are this cluster's. */
  possessions(nodes: readonly Pick<NodeProjection, 'providerId'>[], call: Call): Promise<Possession[]>
  /**
   * Names the target set that `plan` would ask for, without asking the cloud: equal text, equal targets. Used to find the Services
   * that a node change concerns. Throws `permanent` for a selector that doesn't parse.
   */
  targetsKey(
    service: Pick<ServiceProjection, 'annotations' | 'name' | 'namespace'>,
    nodes: readonly NodeProjection[],
  ): string
}

/** `ingress`, if known, proves which load balancer was the Service's when its label is lost. */
export type ServiceIdentity = Pick<ServiceProjection, 'namespace' | 'name' | 'uid' | 'annotations'> &
  Partial<Pick<ServiceProjection, 'ingress'>>

export interface RoutePlan {
  readonly changes: readonly Change[]
  readonly notes: readonly Note[]
  /** Nodes with a pod CIDR outside the cluster's ranges, by name. */
  readonly outside: readonly string[]
  /** Routes that the network has before the changes, anybody's, and how many it takes. */
  readonly use?: { readonly routes: number; readonly limit: number }
}

export interface RoutesApplied {
  /** Nodes all of whose routable pod CIDRs have a route now. */
  routed: Set<string>
  /** Why the others have not. */
  failed: Map<string, Error>
  /** Nodes without pod CIDRs that a route of the cluster's ranges led to. */
  unassigned: Set<string>
  /** Why routes that lead to no node are still there. */
  leftOver: Error[]
  notes: Note[]
}

/** Pod routes in a cloud network. */
export interface Routes {
  plan(nodes: readonly NodeProjection[], clusterCidrs: readonly string[], call: Call): Promise<RoutePlan>
  apply(plan: RoutePlan, call: Call): Promise<RoutesApplied>
}

/** An address that is kept on a healthy machine of the control plane. It is its user's: found, never made or given back. */
export interface ControlPlaneAddress {
  /** Port of the API server at the address; 0 means the API server's own. */
  readonly port: number
  /** Health is asked at the machine's own address, where the API server answers at the other also on machines that do not have it. */
  readonly checkMachine: boolean
  /**
   * `holder` is the machine that has it now, by its provider id in every form that a node may have. No address when there is none;
   * `searched` says what was looked for.
   */
  find(call: Call): Promise<{ address?: { id: string; ip: string; holder?: readonly string[] }; searched: string }>
  /** Moves it in one step, wherever it is. */
  assign(id: string, providerId: string, call: Call): Promise<void>
}
