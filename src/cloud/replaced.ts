import type { Call } from '../call.ts'
import { kindOf, messageOf } from '../errors.ts'
import type { NodeProjection } from '../events/projection.ts'
import type { Note } from './provider.ts'

/**
 * For a node whose machine is gone: whether another machine has its name by now. It was made anew then, and kubelet goes on with the Node
 * of the old one, whose provider id nobody can change.
 * @param successor looks for another machine of the node's name, and answers its provider id
 */
export async function replacedNotes(
  { name, providerId }: Pick<NodeProjection, 'name' | 'providerId'>,
  successor: () => Promise<string | undefined>,
  call: Call,
): Promise<Note[]> {
  try {
    const now = await successor()
    if (now === undefined) return []
    return [
      {
        type: 'Warning',
        reason: 'MachineReplaced',
        message: `${providerId} is gone, and the machine named "${name}" is ${now} now. A provider id can't be changed: delete Node ${name}, and its kubelet joins again under the new one`,
        node: name,
      },
    ]
  } catch (error) {
    if (kindOf(error) === 'aborted') throw error
    // That the machine is gone is an answer without it.
    call.log.debug(
      { node: name, reason: messageOf(error) },
      'could not look for a machine of the name of one that is gone',
    )
    return []
  }
}
