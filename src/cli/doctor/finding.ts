import { messageOf } from '../../errors.ts'
import type { Finding } from './types.ts'

export const ok = (area: string, what: string): Finding => ({ area, level: 'ok', what })
export const warning = (area: string, what: string, toDo: string): Finding => ({ area, level: 'warning', what, toDo })
export const problem = (area: string, what: string, toDo: string): Finding => ({ area, level: 'problem', what, toDo })

/** What went wrong while one thing was looked at is a finding, and the others are looked at all the same. */
export async function looked(area: string, toDo: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    return [problem(area, messageOf(error), toDo)]
  }
}

/** `a, b, c and 7 more` */
export function some(names: readonly string[], shown = 5): string {
  const more = names.length - shown
  return more > 0 ? `${names.slice(0, shown).join(', ')} and ${more} more` : names.join(', ')
}
