import type { Call } from '../call.ts'
import { messageOf } from '../errors.ts'
import { parseSubject } from '../events/subject.ts'
import { NODES, SERVICES } from '../kubernetes/resources.ts'
import { type Cluster, COMPONENT } from './cluster.ts'

/**
 * A Warning on the object that a key names, for what is known of its work and not of the object itself. Says nothing of an object that
 * is gone, and fails nothing: it is told in the log already.
 */
export async function tellObject(
  { kubernetes, recorder }: Pick<Cluster, 'kubernetes' | 'recorder'>,
  key: string,
  { reason, message }: { reason: string; message: string },
  call: Call,
): Promise<void> {
  const ref = parseSubject(key)
  if (!ref) return
  try {
    const object = await (ref.kind === 'Node' ? kubernetes.get(NODES, ref, call) : kubernetes.get(SERVICES, ref, call))
    if (!object) return
    const { uid } = object.metadata
    recorder.record({ object: { ...ref, uid }, type: 'Warning', reason, message, component: COMPONENT.windlass })
  } catch (error) {
    call.log.debug({ object: key, reason: messageOf(error) }, 'could not tell an object of its work')
  }
}
