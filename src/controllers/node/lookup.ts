import type { Call } from '../../call.ts'
import type { CloudProvider, InstanceLookup } from '../../cloud/provider.ts'
import { transient } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'

export type MachineLookup =
  | (Extract<InstanceLookup, { kind: 'found' }> & { cloud: CloudProvider })
  | Exclude<InstanceLookup, { kind: 'found' }>
  /** The provider id is none of ours: the node belongs to somebody else, and is not touched. */
  | { kind: 'foreign' }

/** The machine behind a node, at whichever cloud it is. */
export async function findMachine(
  clouds: readonly CloudProvider[],
  node: NodeProjection,
  call: Call,
  options: { fresh?: boolean } = {},
): Promise<MachineLookup> {
  const { providerId } = node
  if (providerId !== undefined) {
    const cloud = clouds.find((one) => one.owns(providerId))
    if (!cloud) return { kind: 'foreign' }
    const lookup = await cloud.instances.find(node, call, options)
    return lookup.kind === 'found' ? { ...lookup, cloud } : lookup
  }
  const answers = await answersOf(clouds, (cloud) => cloud.instances.find(node, call, options))
  const lookups = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const ambiguous = lookups.find((lookup) => lookup.kind === 'ambiguous')
  if (ambiguous) return ambiguous
  const found = answers.flatMap((answer, i) => {
    const cloud = clouds[i]
    return cloud && answer.status === 'fulfilled' && answer.value.kind === 'found' ? [{ ...answer.value, cloud }] : []
  })
  const [first, second] = found
  if (first && second)
    return {
      kind: 'ambiguous',
      message: `machines named ${node.name} exist at ${found.map(({ cloud }) => cloud.name).join(' and ')}; rename one, or start kubelet with --provider-id`,
      notes: found.flatMap(({ notes }) => notes),
    }
  if (first) return first
  // One cloud's trouble must not hide a machine at another, but without a find it leaves the question open.
  const failed = answers.find((answer) => answer.status === 'rejected')
  if (failed) throw failed.reason
  const missing = lookups.filter((lookup) => lookup.kind === 'not-found')
  const nearest = missing.find((lookup) => lookup.nearest !== undefined)?.nearest
  return {
    kind: 'not-found',
    searched: missing.map(({ searched }) => searched).join('; '),
    ...(nearest === undefined ? {} : { nearest }),
    notes: missing.flatMap(({ notes }) => notes),
  }
}

/** Once one cloud has the machine, others are waited for so long. */
const GRACE_MS = 2000

/** What each cloud says. One that says nothing at all must not keep nodes of another waiting for its time-outs. */
function answersOf(
  clouds: readonly CloudProvider[],
  ask: (cloud: CloudProvider) => Promise<InstanceLookup>,
): Promise<PromiseSettledResult<InstanceLookup>[]> {
  const answers = clouds.map(
    ({ name }): PromiseSettledResult<InstanceLookup> => ({
      status: 'rejected',
      reason: transient(`${name} does not answer`),
    }),
  )
  return new Promise((resolve) => {
    let open = clouds.length
    let grace: NodeJS.Timeout | undefined
    const finish = () => {
      clearTimeout(grace)
      resolve(answers)
    }
    const note = (i: number) => (answer: PromiseSettledResult<InstanceLookup>) => {
      answers[i] = answer
      open--
      if (open === 0) finish()
      else if (answer.status === 'fulfilled' && answer.value.kind === 'found') grace ??= setTimeout(finish, GRACE_MS)
    }
    for (const [i, cloud] of clouds.entries())
      ask(cloud).then(
        (value) => note(i)({ status: 'fulfilled', value }),
        (reason) => note(i)({ status: 'rejected', reason }),
      )
    if (clouds.length === 0) finish()
  })
}
