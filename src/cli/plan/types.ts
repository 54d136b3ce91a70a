import type { Note } from '../../cloud/provider.ts'

/** What `windlass plan --json` prints. Fields are only ever added; another meaning of one means another `v`. */
export interface PlanDocument {
  v: 1
  clusters: ClusterPlan[]
}

export interface ClusterPlan {
  cluster: string
  /** Objects in the order Nodes, Services, routes, the control plane's address, each by name. */
  items: PlanItem[]
  /** Why nothing of the cluster could be planned. */
  fault?: string
}

export interface PlanItem {
  /** `Node/w1`, `Service/default/web`, `Cluster/routes` or `Cluster/control-plane-address`. */
  subject: string
  /** In the order in which they would be carried out. Empty: the object is as it should be. */
  changes: PlannedChange[]
  /** What would be said about it in Events. */
  notes: Note[]
  /** Why it could not be planned, or not be carried out before a human changes something; one sentence each. */
  faults: string[]
  /** Set for an object that is left alone, and why. */
  skipped?: string
}

export interface PlannedChange {
  /** Where it is written. */
  at: 'cloud' | 'kubernetes'
  kind: string
  summary: string
}
