import type { Call } from '../call.ts'
import { kindOf, messageOf, transient, WindlassError } from '../errors.ts'
import type { HttpResponse } from '../http/client.ts'
import { refusalError } from './answer.ts'
import type { KubernetesConnection } from './connection.ts'
import type { ObjectMeta } from './objects.ts'
import { apiVersionOf, describe, type ObjectName, type Resource, resourcePath } from './resources.ts'

const TIMEOUT_MS = 15_000
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
const PAGE_SIZE = 500
const LIST_RESTARTS = 3
export const FIELD_MANAGER = 'windlass'

export interface ListOptions<T = unknown, P = T> {
  /** All namespaces if absent. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** Objects per page. */
  pageSize?: number
  /** What is kept of each object, so that a long list needs little memory. */
  project?: (object: T) => P
}

export interface ObjectList<T> {
  items: T[]
  /** Version of the whole list, from which a watch continues. */
  resourceVersion: string
}

export type PatchType = 'merge' | 'strategic' | 'json' | 'apply'

/** A change to one object. Preconditions (uid, resourceVersion) travel in the body. */
export interface Patch {
  type: PatchType
  subresource?: 'status'
  body: unknown
}

export interface WriteOptions {
  /** The API server checks and answers, but stores nothing. */
  dryRun?: boolean
  fieldManager?: string
}

export interface DeleteOptions {
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: boolean
}

/**
 * The Kubernetes API in the verbs that controllers need. All throw `WindlassError`: `transient` (no answer, 5xx, 401, 403 with code
 * `Forbidden`, 409 with code `Conflict` or `AlreadyExists`), `throttled` (429, 503 with Retry-After), `permanent` (400, 422),
 * `aborted`. Every write awaits `call.beforeWrite` first.
 */
export interface KubernetesApi {
  /** Undefined when there is no such object (or no such kind). */
  get<T>(resource: Resource<T>, name: ObjectName, call: Call): Promise<T | undefined>
  /** The whole list, or an error: a part is never taken for the whole. */
  list<T, P = T>(resource: Resource<T>, options: ListOptions<T, P>, call: Call): Promise<ObjectList<P>>
  create<T>(resource: Resource<T>, object: NewObject, call: Call, options?: WriteOptions): Promise<T>
  /** Undefined when the object is gone. `apply` creates it instead. */
  patch<T>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    call: Call,
    options?: WriteOptions,
  ): Promise<T | undefined>
  /** As `patch`, but only the metadata come back: a real node lists dozens of container images, and who changes it needs none of them. */
  patchMetadata(
    resource: Resource<unknown>,
    name: ObjectName,
    patch: Patch,
    call: Call,
    options?: WriteOptions,
  ): Promise<ObjectMeta | undefined>
  /** `absent` when it was gone already. A finalizer may keep a deleted object for a while. */
  delete(
    resource: Resource<unknown>,
    name: ObjectName,
    call: Call,
    options?: DeleteOptions,
  ): Promise<'deleted' | 'absent'>
}

export interface NewObject {
  metadata: { name?: string; generateName?: string; namespace?: string; [field: string]: unknown }
  [field: string]: unknown
}

/** One request that was answered, or got no answer (`status` 0), for metrics. */
export interface RequestSeen {
  /** As in RBAC: get, list, watch, create, patch, delete. */
  verb: string
  /** Plural, with its subresource: `nodes`, `services/status`. */
  resource: string
  status: number
  ms: number
}

export interface ApiOptions {
  onRequest?: (seen: RequestSeen) => void
}

export function createKubernetesApi(connection: KubernetesConnection, options: ApiOptions = {}): KubernetesApi {
  return new HttpKubernetesApi(connection, options)
}

const CONTENT_TYPES: Record<PatchType, string> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
}

interface Exchange {
  verb: string
  method: string
  resource: Resource<unknown>
  namespace?: string
  name?: string
  /** What it is about, where the path does not say. */
  object?: string
  subresource?: string
  query?: Record<string, string | undefined>
  contentType?: string
  body?: unknown
  tested?: boolean
  metadataOnly?: boolean
}

class HttpKubernetesApi implements KubernetesApi {
  readonly #connection: KubernetesConnection
  readonly #onRequest: (seen: RequestSeen) => void

  constructor(connection: KubernetesConnection, { onRequest = () => {} }: ApiOptions) {
    this.#connection = connection
    this.#onRequest = onRequest
  }

  async get<T>(resource: Resource<T>, name: ObjectName, call: Call) {
    const exchange = { verb: 'get', method: 'GET', resource, ...pick(name) }
    const answer = await this.#send(exchange, call)
    return answer.status === 404 ? undefined : this.#read<T>(exchange, answer)
  }

  async list<T, P = T>(resource: Resource<T>, options: ListOptions<T, P>, call: Call) {
    for (let restarts = 0; ; restarts++) {
      try {
        return await this.#listOnce(resource, options, call)
      } catch (error) {
        const expired = error instanceof WindlassError && error.status === 410
        if (!expired || restarts === LIST_RESTARTS) throw error
      }
    }
  }

  async #listOnce<T, P>(resource: Resource<T>, options: ListOptions<T, P>, call: Call): Promise<ObjectList<P>> {
    const { namespace, labelSelector, fieldSelector, pageSize = PAGE_SIZE } = options
    const project = options.project ?? ((object: T) => object as unknown as P)
    const items: P[] = []
    let next: string | undefined
    for (;;) {
      const query = { limit: String(pageSize), continue: next, labelSelector, fieldSelector }
      const exchange: Exchange = { verb: 'list', method: 'GET', resource, namespace, query }
      const page = this.#read<ListPage<T>>(exchange, await this.#send(exchange, call))
      for (const item of page.items ?? []) items.push(project(item))
      next = page.metadata.continue || undefined
      if (next === undefined) return { items, resourceVersion: page.metadata.resourceVersion }
    }
  }

  async create<T>(resource: Resource<T>, object: NewObject, call: Call, options: WriteOptions = {}) {
    const { namespace, name, generateName = '' } = object.metadata
    const described = describe(resource, { namespace, name: name ?? `${generateName}…` })
    const exchange: Exchange = {
      verb: 'create',
      method: 'POST',
      resource,
      namespace,
      object: described,
      query: writeQuery(options),
      contentType: 'application/json',
      body: { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object },
    }
    await call.beforeWrite(`create ${described}`)
    return this.#read<T>(exchange, await this.#send(exchange, call))
  }

  patch<T>(resource: Resource<T>, name: ObjectName, patch: Patch, call: Call, options: WriteOptions = {}) {
    return this.#patch<T>(resource, name, patch, call, options, false)
  }

  async #patch<T>(
    resource: Resource<unknown>,
    name: ObjectName,
    patch: Patch,
    call: Call,
    options: WriteOptions,
    metadataOnly: boolean,
  ): Promise<T | undefined> {
    const { type, subresource } = patch
    const exchange: Exchange = {
      verb: 'patch',
      method: 'PATCH',
      resource,
      ...pick(name),
      subresource,
      metadataOnly,
      query: { ...writeQuery(options), ...(type === 'apply' ? { force: 'true' } : {}) },
      contentType: CONTENT_TYPES[type],
      body:
        type === 'apply'
          ? { apiVersion: apiVersionOf(resource), kind: resource.kind, ...(patch.body as object) }
          : patch.body,
      tested: type === 'json' && (patch.body as { op: string }[]).some(({ op }) => op === 'test'),
    }
    await call.beforeWrite(`patch ${describe(resource, name)}${subresource ? ` ${subresource}` : ''}`)
    const answer = await this.#send(exchange, call)
    return answer.status === 404 && type !== 'apply' ? undefined : this.#read<T>(exchange, answer)
  }

  async patchMetadata(
    resource: Resource<unknown>,
    name: ObjectName,
    patch: Patch,
    call: Call,
    options: WriteOptions = {},
  ) {
    const answer = await this.#patch<{ metadata: ObjectMeta }>(resource, name, patch, call, options, true)
    return answer?.metadata
  }

  async delete(resource: Resource<unknown>, name: ObjectName, call: Call, options: DeleteOptions = {}) {
    const exchange: Exchange = {
      verb: 'delete',
      method: 'DELETE',
      resource,
      ...pick(name),
      query: options.dryRun ? { dryRun: 'All' } : {},
      contentType: 'application/json',
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(options.preconditions ? { preconditions: options.preconditions } : {}),
      },
    }
    await call.beforeWrite(`delete ${describe(resource, name)}`)
    const answer = await this.#send(exchange, call)
    if (answer.status === 404) return 'absent'
    this.#read(exchange, answer)
    return 'deleted'
  }

  async #send(exchange: Exchange, call: Call): Promise<HttpResponse> {
    const { verb, method, resource, contentType, body, query } = exchange
    const seen = { verb, resource: resourceName(exchange) }
    const started = performance.now()
    try {
      const answer = await this.#connection.request({
        method,
        path: resourcePath(resource, exchange),
        query,
        headers: {
          accept: exchange.metadataOnly ? METADATA_ONLY : 'application/json',
          ...(contentType ? { 'content-type': contentType } : {}),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs: TIMEOUT_MS,
        signal: call.signal,
        ...(method === 'GET' ? {} : { beforeResend: () => call.beforeWrite(`${verb} ${objectOf(exchange)}`) }),
      })
      this.#onRequest({ ...seen, status: answer.status, ms: performance.now() - started })
      return answer
    } catch (error) {
      this.#onRequest({ ...seen, status: 0, ms: performance.now() - started })
      if (kindOf(error) !== 'transient') throw error
      throw transient(`Kubernetes could not be asked to ${verb} ${objectOf(exchange)}: ${messageOf(error)}`, {
        cause: undefined,
        ...(error instanceof WindlassError && error.code ? { code: error.code } : {}),
      })
    }
  }

  #read<T>(exchange: Exchange, { status, headers, body }: HttpResponse): T {
    const object = objectOf(exchange)
    if (status < 200 || status > 299) {
      const { verb, tested } = exchange
      const refusal = { status, headers, body, verb, resource: resourceName(exchange), object, tested }
      throw refusalError(refusal, Date.now())
    }
    try {
      return JSON.parse(body.toString()) as T
    } catch (cause) {
      throw transient(`Kubernetes answered ${status} for ${object}, but with something other than JSON`, {
        cause,
        status,
      })
    }
  }
}

interface ListPage<T> {
  metadata: { resourceVersion: string; continue?: string }
  items?: T[] | null
}

/** Callers pass whatever has a name; nothing else of it may reach the request. */
function pick({ namespace, name }: ObjectName): ObjectName {
  return { namespace, name }
}

function writeQuery({ dryRun, fieldManager = FIELD_MANAGER }: WriteOptions) {
  return { fieldManager, ...(dryRun ? { dryRun: 'All' } : {}) }
}

function resourceName({ resource, subresource }: Exchange): string {
  return subresource ? `${resource.plural}/${subresource}` : resource.plural
}

function objectOf({ resource, namespace, name, object }: Exchange): string {
  if (object !== undefined) return object
  if (name !== undefined) return describe(resource, { namespace, name })
  return namespace === undefined ? resource.plural : `${resource.plural} of namespace ${namespace}`
}
