import type { Admin, Json } from '../../apiserver/admin.ts'
import type { Case } from '../case.ts'
import type { Substitution } from '../form/substitute.ts'

export interface CloudContext {
  definition: Case
  /** For files of this case. */
  dir: string
  /** Of the cluster that this case has to itself. */
  admin: Admin
  url: string
  /** Path of the controller's own. */
  kubeconfig: string
}

/** A simulated cloud account, as the steps of a case handle it and as the result shows it. */
export interface SimulatedCloud {
  /** What the controller needs to reach it. */
  env(): Record<string, string>
  seed(account: Json): Promise<void>
  mutate(patch: Json): Promise<void>
  fault(fault: Json): Promise<void>
  activity(): Promise<Activity>
  /** By method and path. */
  calls(): Promise<Record<string, number>>
  /** In the normal form: `objects` are of kinds that only this cloud's controller handles. */
  world(): Promise<{ account: Json; objects?: Record<string, Json>; substitutions: Substitution[] }>
  /** One entry per request, for reading after a failure. */
  requestLog(): Promise<unknown[]>
  stop(): Promise<void>
}

export interface Activity {
  /** Changes whenever the account does. */
  revision: string
  /** Actions and writing requests that still run. */
  inflight: number
  requests: number
}
