import { kindOf, messageOf } from '../errors.ts'

/** What a process that ends tells of why. What a human must change is a sentence; where in the code it was found helps nobody. */
export function fatalFields(error: unknown): { error: string; stack?: string } {
  const stack = error instanceof Error && kindOf(error) !== 'permanent' ? error.stack : undefined
  return { error: messageOf(error), ...(stack === undefined ? {} : { stack }) }
}
