import { randomBytes, randomUUID } from 'node:crypto'
import { isObject, type Json, type JsonObject, sameJson } from './json.ts'
import { type Allocator, apiVersionOf, at, type Kind } from './kinds.ts'
import { alreadyExists, badRequest, type Cause, conflict, expired, invalid, notFound, Refusal } from './refusal.ts'

export type StoredObject = JsonObject & { metadata: JsonObject }

export interface Change {
  version: number
  kind: Kind
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: StoredObject
  /** As it was before, for selectors. */
  previous?: StoredObject
}

export interface Preconditions {
  uid?: string
  resourceVersion?: string
}

interface WriteOptions {
  dryRun?: boolean
}

const NODE_PORTS = { first: 30_000, last: 32_767 }

/** All objects, their versions, and a bounded history of changes that watches start from. */
export class Store {
  /** Changes that are kept; a watch from before the oldest is refused. */
  historyLimit = 1000
  #version = 1000
  /** Watches from before this version are refused. */
  #oldest = 1000
  readonly #objects = new Map<Kind, Map<string, StoredObject>>()
  #history: Change[] = []
  readonly #listeners = new Set<(change: Change) => void>()
  #clusterIps = 0

  get version(): number {
    return this.#version
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** What happened after a version. Throws 410 when that is no longer known. */
  since(version: number): Change[] {
    if (version < this.#oldest) throw expired(`too old resource version: ${version} (${this.#oldest})`)
    return this.#history.filter((change) => change.version > version)
  }

  isKnown(version: number): boolean {
    return version >= this.#oldest
  }

  /** Forgets all history, as etcd does when it compacts. */
  compact(): void {
    this.#version++
    this.#oldest = this.#version
    this.#history = []
  }

  list(kind: Kind, namespace?: string): StoredObject[] {
    const prefix = namespace === undefined ? '' : `${namespace}/`
    const objects = this.#of(kind)
    return [...objects.keys()]
      .filter((key) => key.startsWith(prefix))
      .sort()
      .map((key) => objects.get(key) as StoredObject)
  }

  get(kind: Kind, namespace: string | undefined, name: string): StoredObject {
    const object = this.#of(kind).get(keyOf(namespace, name))
    if (!object) throw notFound(kind.plural, name)
    return object
  }

  has(kind: Kind, namespace: string | undefined, name: string): boolean {
    return this.#of(kind).has(keyOf(namespace, name))
  }

  create(kind: Kind, namespace: string | undefined, given: JsonObject, { dryRun }: WriteOptions = {}): StoredObject {
    checkType(kind, given)
    const object = structuredClone(given) as StoredObject
    const metadata = isObject(object.metadata) ? object.metadata : {}
    object.metadata = metadata
    if (namespace !== undefined && (metadata.namespace ?? namespace) !== namespace)
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    if (!metadata.name && metadata.generateName)
      metadata.name = `${metadata.generateName}${randomBytes(3).toString('hex').slice(0, 5)}`
    const { name } = metadata
    if (typeof name !== 'string' || name === '')
      throw invalid(kind.kind, '', [
        {
          field: 'metadata.name',
          reason: 'FieldValueRequired',
          message: 'Required value: name or generateName is required',
        },
      ])
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) || name.length > 253)
      throw invalid(kind.kind, name, [
        {
          field: 'metadata.name',
          reason: 'FieldValueInvalid',
          message: `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`,
        },
      ])
    if (metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
    this.#checkNamespace(kind, namespace)
    if (this.has(kind, namespace, name)) throw alreadyExists(kind.plural, name)
    object.apiVersion = apiVersionOf(kind)
    object.kind = kind.kind
    if (namespace !== undefined) metadata.namespace = namespace
    metadata.uid = randomUUID()
    metadata.creationTimestamp = now()
    delete metadata.deletionTimestamp
    kind.complete?.(object, undefined, this.#allocator())
    refuse(kind, name, kind.validate?.(object, undefined, 'spec') ?? [])
    if (dryRun) return object
    return this.#commit(kind, 'ADDED', object, undefined)
  }

  /** Puts a whole object, or with `subresource` only its status (and metadata), in the place of the present one. */
  update(
    kind: Kind,
    namespace: string | undefined,
    name: string,
    given: JsonObject,
    { subresource, dryRun }: WriteOptions & { subresource?: string } = {},
  ): StoredObject {
    const old = this.get(kind, namespace, name)
    const object = structuredClone(given) as StoredObject
    const metadata = isObject(object.metadata) ? object.metadata : {}
    object.metadata = metadata
    if ((metadata.name ?? name) !== name)
      throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
    if ((metadata.namespace ?? namespace) !== namespace)
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    const { resourceVersion, uid } = old.metadata
    if (metadata.resourceVersion && metadata.resourceVersion !== resourceVersion)
      throw conflict(
        kind.plural,
        name,
        'the object has been modified; please apply your changes to the latest version and try again',
      )
    if (kind.status) {
      if (subresource === 'status') setOrDrop(object, 'spec', old.spec)
      else setOrDrop(object, 'status', old.status)
    }
    object.apiVersion = old.apiVersion as Json
    object.kind = old.kind as Json
    metadata.name = name
    metadata.uid ??= uid as Json
    for (const field of [
      'namespace',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'resourceVersion',
    ])
      setOrDrop(metadata, field, old.metadata[field])
    kind.complete?.(object, old, this.#allocator())
    refuse(kind, name, [
      ...metadataCauses(metadata, old.metadata),
      ...(kind.validate?.(object, old, subresource === 'status' ? 'status' : 'spec') ?? []),
    ])
    if (sameJson(object, old)) return old
    if (dryRun) return object
    if (metadata.deletionTimestamp && finalizersOf(object).length === 0)
      return this.#commit(kind, 'DELETED', object, old)
    return this.#commit(kind, 'MODIFIED', object, old)
  }

  /** With finalizers the object stays, marked; the answer is the object then. */
  delete(
    kind: Kind,
    namespace: string | undefined,
    name: string,
    { uid, resourceVersion }: Preconditions = {},
    { dryRun }: WriteOptions = {},
  ): { object: StoredObject; gone: boolean } {
    const old = this.get(kind, namespace, name)
    for (const [label, wanted, present] of [
      ['UID', uid, old.metadata.uid],
      ['ResourceVersion', resourceVersion, old.metadata.resourceVersion],
    ])
      if (wanted !== undefined && wanted !== present)
        throw conflict(
          kind.plural,
          name,
          `Precondition failed: ${label} in precondition: ${wanted}, ${label} in object meta: ${present}`,
        )
    const holds = finalizersOf(old).length > 0 || (kind.plural === 'namespaces' && this.#contents(name).length > 0)
    if (dryRun) return { object: old, gone: !holds }
    if (!holds) return { object: this.#commit(kind, 'DELETED', structuredClone(old), old), gone: true }
    if (old.metadata.deletionTimestamp) return { object: old, gone: false }
    const object = structuredClone(old)
    object.metadata.deletionTimestamp = now()
    object.metadata.deletionGracePeriodSeconds = 0
    if (kind.plural === 'namespaces') object.status = { phase: 'Terminating' }
    const marked = this.#commit(kind, 'MODIFIED', object, old)
    if (kind.plural === 'namespaces') this.#empty(name)
    return { object: marked, gone: false }
  }

  #commit(kind: Kind, type: Change['type'], object: StoredObject, previous: StoredObject | undefined): StoredObject {
    const version = ++this.#version
    object.metadata.resourceVersion = String(version)
    const key = keyOf(object.metadata.namespace as string | undefined, object.metadata.name as string)
    if (type === 'DELETED') this.#of(kind).delete(key)
    else this.#of(kind).set(key, object)
    const change: Change = { version, kind, type, object, ...(previous ? { previous } : {}) }
    this.#history.push(change)
    while (this.#history.length > this.historyLimit) this.#oldest = this.#history.shift()?.version ?? this.#oldest
    for (const listener of this.#listeners) listener(change)
    if (type === 'DELETED' && kind.namespaced) this.#finishNamespace(object.metadata.namespace as string)
    return object
  }

  #checkNamespace(kind: Kind, namespace: string | undefined): void {
    if (namespace === undefined) return
    const namespaces = this.#namespaces()
    const found = namespaces && this.#of(namespaces).get(namespace)
    if (!found) throw notFound('namespaces', namespace)
    if (found.metadata.deletionTimestamp)
      throw new Refusal(
        403,
        'Forbidden',
        `${kind.plural} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
        { kind: kind.plural, causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] },
      )
  }

  #namespaces(): Kind | undefined {
    return [...this.#objects.keys()].find(({ plural, group }) => plural === 'namespaces' && group === '')
  }

  #contents(namespace: string): [Kind, StoredObject][] {
    return [...this.#objects.keys()]
      .filter(({ namespaced }) => namespaced)
      .flatMap((kind) => this.list(kind, namespace).map((object): [Kind, StoredObject] => [kind, object]))
  }

  #empty(namespace: string): void {
    for (const [kind, object] of this.#contents(namespace)) this.delete(kind, namespace, object.metadata.name as string)
  }

  #finishNamespace(name: string): void {
    const kind = this.#namespaces()
    const namespace = kind && this.#of(kind).get(name)
    if (kind && namespace?.metadata.deletionTimestamp && this.#contents(name).length === 0)
      this.delete(kind, undefined, name)
  }

  #allocator(): Allocator {
    const used = new Set<number>()
    for (const [kind, objects] of this.#objects)
      if (kind.plural === 'services')
        for (const service of objects.values()) {
          for (const port of (at(service, 'spec', 'ports') ?? []) as { nodePort?: number }[])
            if (port.nodePort) used.add(port.nodePort)
          const health = at(service, 'spec', 'healthCheckNodePort')
          if (typeof health === 'number') used.add(health)
        }
    return {
      nodePort: (wanted, own) => {
        if (wanted !== undefined) {
          if (!used.has(wanted) || own.has(wanted)) return wanted
          throw invalid('Service', '', [
            {
              field: 'spec.ports[0].nodePort',
              reason: 'FieldValueInvalid',
              message: `Invalid value: ${wanted}: provided port is already allocated`,
            },
          ])
        }
        for (let port = NODE_PORTS.first; port <= NODE_PORTS.last; port++) {
          if (used.has(port)) continue
          used.add(port)
          return port
        }
        throw new Refusal(500, 'InternalError', 'no node port is free')
      },
      clusterIp: () => {
        const n = ++this.#clusterIps
        return `10.96.${Math.floor(n / 250)}.${(n % 250) + 1}`
      },
    }
  }

  #of(kind: Kind): Map<string, StoredObject> {
    const objects = this.#objects.get(kind) ?? new Map<string, StoredObject>()
    this.#objects.set(kind, objects)
    return objects
  }
}

export function checkType(kind: Kind, { apiVersion, kind: name }: JsonObject): void {
  if ((apiVersion ?? apiVersionOf(kind)) !== apiVersionOf(kind) || (name ?? kind.kind) !== kind.kind)
    throw badRequest(
      `${name} in version "${apiVersion}" cannot be handled as a ${kind.kind}: no kind "${name}" is registered here`,
    )
}

function metadataCauses(metadata: JsonObject, old: JsonObject): Cause[] {
  const causes: Cause[] = []
  if (metadata.uid !== old.uid)
    causes.push({
      field: 'metadata.uid',
      reason: 'FieldValueInvalid',
      message: `Invalid value: "${metadata.uid}": field is immutable`,
    })
  if (!old.deletionTimestamp) return causes
  const before = finalizersOf({ metadata: old })
  const added = finalizersOf({ metadata }).filter((finalizer) => !before.includes(finalizer))
  if (added.length > 0)
    causes.push({
      field: 'metadata.finalizers',
      reason: 'FieldValueForbidden',
      message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`,
    })
  return causes
}

function finalizersOf(object: { metadata: JsonObject }): string[] {
  return (object.metadata.finalizers ?? []) as string[]
}

function refuse(kind: Kind, name: string, causes: Cause[]): void {
  if (causes.length > 0) throw invalid(kind.kind, name, causes)
}

function setOrDrop(object: JsonObject, field: string, value: Json | undefined): void {
  if (value === undefined) delete object[field]
  else object[field] = structuredClone(value)
}

function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z')
}
