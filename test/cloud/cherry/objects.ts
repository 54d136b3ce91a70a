import type { Announcement, ObjectChange } from '../../../src/cloud/provider.ts'
import type { KubeObject } from '../../../src/kubernetes/objects.ts'
import { mergePatch } from '../../simulators/kubernetes/merge-patch.ts'

type Spec = Record<string, unknown>

/** The objects of a cluster, as far as announcements have to do with them. Preconditions hold. */
export class Objects {
  readonly #objects = new Map<string, KubeObject>()
  #version = 0

  addNode(name: string, providerID: string): void {
    this.add('Node', name, { providerID }, {})
  }

  add(kind: string, name: string, spec: Spec, labels: Record<string, string>): void {
    const metadata = { name, uid: `uid-${++this.#version}`, labels, annotations: {}, creationTimestamp: '' }
    this.#objects.set(`${kind} ${name}`, { metadata: { ...metadata, resourceVersion: String(this.#version) }, spec })
  }

  edit(kind: string, name: string, spec: Spec): void {
    this.#merge(kind, name, { spec })
  }

  annotate(node: string, annotations: Record<string, string>): void {
    this.#merge('Node', node, { metadata: { annotations } })
  }

  all(kind: string): KubeObject[] {
    return [...this.#objects].flatMap(([key, object]) => (key.startsWith(`${kind} `) ? [structuredClone(object)] : []))
  }

  names(kind: string): string[] {
    return this.all(kind)
      .map(({ metadata }) => metadata.name)
      .sort()
  }

  spec(kind: string, name: string): Spec {
    return (this.#objects.get(`${kind} ${name}`)?.spec ?? {}) as Spec
  }

  labels(kind: string, name: string): Record<string, string> | undefined {
    return this.#objects.get(`${kind} ${name}`)?.metadata.labels
  }

  annotations(node: string): Record<string, string> {
    return this.#objects.get(`Node ${node}`)?.metadata.annotations ?? {}
  }

  /** Makes what is planned, the first `limit` of it; returns what was planned. */
  apply({ queries, plan }: Announcement, limit = Number.POSITIVE_INFINITY): readonly ObjectChange[] {
    const observed = queries.map(({ kind, labelSelector }) => {
      const [key = '', value = ''] = labelSelector?.split('=') ?? []
      return this.all(kind.kind).filter(({ metadata }) => key === '' || metadata.labels?.[key] === value)
    })
    const { changes } = plan(observed)
    for (const change of changes.slice(0, limit)) this.#make(change)
    return changes
  }

  #make(change: ObjectChange): void {
    const { object, name } = change
    const key = `${object.kind} ${name}`
    if (change.action === 'create') {
      if (this.#objects.has(key)) throw new Error(`${key} exists`)
      this.add(object.kind, name, change.spec as Spec, change.labels)
      return
    }
    const present = this.#objects.get(key)
    if (!present) throw new Error(`${key} does not exist`)
    const asked = change.action === 'delete' ? change : (change.body as KubeObject).metadata
    const { uid, resourceVersion = present.metadata.resourceVersion } = asked
    if (uid !== present.metadata.uid || resourceVersion !== present.metadata.resourceVersion)
      throw new Error(`${key} is another than was decided on`)
    if (change.action === 'delete') this.#objects.delete(key)
    else this.#merge(object.kind, name, change.body)
  }

  #merge(kind: string, name: string, body: unknown): void {
    const key = `${kind} ${name}`
    const merged = mergePatch(this.#objects.get(key) as never, body as never) as unknown as KubeObject
    merged.metadata.resourceVersion = String(++this.#version)
    this.#objects.set(key, merged)
  }
}
