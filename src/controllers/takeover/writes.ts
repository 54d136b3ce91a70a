import type { ObjectMeta } from '../../kubernetes/objects.ts'

/** A write to an object by another cloud controller manager. */
export interface ForeignWrite {
  manager: string
  /** Unix time in milliseconds, by the API server's clock, to the second. */
  atMs: number
}

/** The field manager of a program that says nothing else is the name of its binary. `cloud-provider-cherry-auto` is written under by us too. */
const CLOUD_CONTROLLER = /^(.+-)?cloud-controller-manager$|^cloud-provider-(?!cherry-auto$)/

/** Windlass applies the external Service of a control plane under the name that the replaced controller gave itself for it. */
const OURS_TOO = 'cloud-provider-cherry-auto'

/** The newest write that another cloud controller manager made to an object, as the API server noted it. */
export function newestForeignWrite({
  managedFields = [],
}: Pick<ObjectMeta, 'managedFields'>): ForeignWrite | undefined {
  let newest: ForeignWrite | undefined
  for (const { manager = '', time } of managedFields) {
    const atMs = Date.parse(time ?? '')
    if (manager !== OURS_TOO && CLOUD_CONTROLLER.test(manager) && atMs > (newest?.atMs ?? Number.NEGATIVE_INFINITY))
      newest = { manager, atMs }
  }
  return newest
}
