/** Names an object of a cluster in events, queue keys and logs: `Node/worker-1`, `Service/default/web`. */
export type Subject = `Node/${string}` | `Service/${string}/${string}`

export type ObjectRef = { kind: 'Node'; name: string } | { kind: 'Service'; namespace: string; name: string }

export function subjectOf(ref: ObjectRef): Subject {
  return ref.kind === 'Node' ? `Node/${ref.name}` : `Service/${ref.namespace}/${ref.name}`
}

/** The object that a subject names; undefined when it is not a subject. */
export function parseSubject(text: string): ObjectRef | undefined {
  const parts = text.split('/')
  if (parts.some((part) => part === '')) return undefined
  const [kind, first, second] = parts
  if (kind === 'Node' && parts.length === 2 && first) return { kind: 'Node', name: first }
  if (kind === 'Service' && parts.length === 3 && first && second)
    return { kind: 'Service', namespace: first, name: second }
  return undefined
}
