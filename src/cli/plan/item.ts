import { messageOf, WindlassError } from '../../errors.ts'
import type { PlanItem } from './types.ts'

export const blank = (subject: string): PlanItem => ({ subject, changes: [], notes: [], faults: [] })

/** One sentence for each thing that is wrong. */
export function faultsOf(error: unknown): string[] {
  return error instanceof WindlassError && error.faults && error.faults.length > 0
    ? [...error.faults]
    : [messageOf(error)]
}
