import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import { parse as parseYaml, stringify } from 'yaml'
import { Access, EVERYTHING, type Rule } from './access.ts'
import { type Fault, type FaultEffect, Faults } from './faults.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import { jsonPatch } from './json-patch.ts'
import { apiVersionOf, KINDS, type Kind } from './kinds.ts'
import { mergePatch } from './merge-patch.ts'
import { badRequest, expired, notFound, notFoundPath, Refusal } from './refusal.ts'
import { fieldMatcher, labelMatcher } from './selectors.ts'
import { checkType, type Preconditions, Store, type StoredObject } from './store.ts'
import { strategicMerge } from './strategic-merge.ts'
import { Watches } from './watches.ts'

export interface SimulatorOptions {
  /** One line per request. */
  log?: (line: string) => void
  /** Kinds beside the built-in ones, e.g. custom resources. */
  kinds?: Kind[]
  /** PEM; the server speaks HTTPS then, and `ca` goes into the kubeconfig. */
  tls?: { key: string; cert: string; ca: string; requestCert?: boolean }
  port?: number
}

export interface SeenRequest {
  method: string
  url: string
  verb: string
  /** Plural, with its subresource. */
  resource: string
  status: number
  user?: string
  /** Common name of the client's certificate. */
  clientName?: string
  contentType?: string
  body?: Json
}

export interface KubernetesSimulator {
  readonly url: string
  /** Text of a kubeconfig that may do everything. */
  readonly kubeconfig: string
  /** The token in that kubeconfig. */
  readonly token: string
  readonly store: Store
  readonly watches: Watches
  readonly faults: Faults
  readonly access: Access
  /** Requests so far, oldest first. */
  readonly requests: SeenRequest[]
  /** Text of a kubeconfig with a token that has these rights. */
  kubeconfigFor(user: string, rules: Rule[]): string
  kind(plural: string): Kind
  create(plural: string, object: JsonObject): StoredObject
  get(plural: string, name: string, namespace?: string): StoredObject | undefined
  list(plural: string, namespace?: string): StoredObject[]
  /** Writes past the subresource rules what `change` makes of the object: kubelet and user at once. */
  change(plural: string, name: string, change: (object: StoredObject) => void, namespace?: string): StoredObject
  delete(plural: string, name: string, namespace?: string): void
  /** Tokens for further pages of lists are refused with 410 from here on. */
  expireContinueTokens(): void
  close(): Promise<void>
}

/** A Kubernetes API server in memory, over real HTTP: as much of it as a cloud controller meets, and its refusals. */
export async function startKubernetesSimulator(options: SimulatorOptions = {}): Promise<KubernetesSimulator> {
  const simulator = new Simulator(options)
  await simulator.listen()
  return simulator
}

interface Target {
  kind: Kind
  namespace?: string
  name?: string
  subresource?: string
}

interface Page {
  rest: StoredObject[]
  version: number
}

const MAX_BODY_BYTES = 3 * 1024 * 1024
const REQUESTS_KEPT = 20_000
const PARTIAL = /;\s*as=PartialObjectMetadata(List)?\b/

class Simulator implements KubernetesSimulator {
  url = ''
  readonly token = 'simulator-admin-token'
  readonly store = new Store()
  readonly watches = new Watches(this.store)
  readonly faults = new Faults()
  readonly access = new Access()
  readonly requests: SeenRequest[] = []
  readonly #options: SimulatorOptions
  readonly #kinds: Kind[]
  readonly #server
  #pages = new Map<string, Page>()
  #pageNumber = 0

  constructor(options: SimulatorOptions) {
    this.#options = options
    this.#kinds = [...KINDS, ...(options.kinds ?? [])]
    const { tls } = options
    const handle = (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response)
    this.#server = tls
      ? createHttpsServer({ ...tls, requestCert: tls.requestCert ?? false, rejectUnauthorized: false }, handle)
      : createHttpServer(handle)
    this.access.grant(this.token, { user: 'admin', rules: EVERYTHING })
    for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
      this.create('namespaces', { metadata: { name, labels: { 'kubernetes.io/metadata.name': name } } })
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#options.port ?? 0, '127.0.0.1', resolve)
    })
    const { port } = this.#server.address() as AddressInfo
    this.url = `${this.#options.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  }

  get kubeconfig(): string {
    return this.#kubeconfig('admin', this.token)
  }

  kubeconfigFor(user: string, rules: Rule[]): string {
    const token = `simulator-token-of-${user}`
    this.access.grant(token, { user, rules })
    return this.#kubeconfig(user, token)
  }

  kind(plural: string): Kind {
    const kind = this.#kinds.find((one) => one.plural === plural)
    if (!kind) throw new Error(`the simulator has no ${plural}`)
    return kind
  }

  create(plural: string, object: JsonObject): StoredObject {
    const kind = this.kind(plural)
    const namespace = kind.namespaced ? String((object.metadata as JsonObject).namespace ?? 'default') : undefined
    return structuredClone(this.store.create(kind, namespace, object))
  }

  get(plural: string, name: string, namespace?: string): StoredObject | undefined {
    const kind = this.kind(plural)
    const space = kind.namespaced ? (namespace ?? 'default') : undefined
    return this.store.has(kind, space, name) ? structuredClone(this.store.get(kind, space, name)) : undefined
  }

  list(plural: string, namespace?: string): StoredObject[] {
    return structuredClone(this.store.list(this.kind(plural), namespace))
  }

  change(plural: string, name: string, change: (object: StoredObject) => void, namespace?: string): StoredObject {
    const kind = this.kind(plural)
    const space = kind.namespaced ? (namespace ?? 'default') : undefined
    const wanted = structuredClone(this.store.get(kind, space, name))
    change(wanted)
    delete wanted.metadata.resourceVersion
    this.store.update(kind, space, name, wanted)
    // An update that took away the last finalizer of a deleted object has ended it.
    if (!kind.status || !this.store.has(kind, space, name)) return wanted
    return structuredClone(this.store.update(kind, space, name, wanted, { subresource: 'status' }))
  }

  delete(plural: string, name: string, namespace?: string): void {
    const kind = this.kind(plural)
    this.store.delete(kind, kind.namespaced ? (namespace ?? 'default') : undefined, name)
  }

  expireContinueTokens(): void {
    this.#pages = new Map()
  }

  async close(): Promise<void> {
    this.watches.close()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #kubeconfig(user: string, token: string): string {
    const { tls } = this.#options
    const ca = tls ? { 'certificate-authority-data': Buffer.from(tls.ca).toString('base64') } : {}
    return stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'simulator',
      clusters: [{ name: 'simulator', cluster: { server: this.url, ...ca } }],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: 'simulator', context: { cluster: 'simulator', user } }],
    })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/' } = request
    const url = new URL(path, this.url)
    const seen: SeenRequest = { method, url: path, verb: '', resource: '', status: 0 }
    try {
      const body = await readBody(request)
      if (url.pathname.startsWith('/_sim/')) {
        send(response, 200, this.#control(method, url.pathname, body) ?? {})
        return
      }
      this.requests.push(seen)
      if (this.requests.length > REQUESTS_KEPT) this.requests.shift()
      response.once('close', () => {
        seen.status ||= response.statusCode
        this.#options.log?.(`${method} ${path} ${seen.status}`)
      })
      const { accept = '*/*', 'content-type': contentType } = request.headers
      if (contentType !== undefined) seen.contentType = contentType
      const account = this.access.authenticate(request.headers.authorization)
      seen.user = account.user
      const name = request.socket instanceof TLSSocket && request.socket.getPeerCertificate().subject?.CN
      if (name) seen.clientName = String(name)
      const target = this.#route(url.pathname)
      if (target && 'kind' in target) {
        seen.verb = verbOf(method, target, url.searchParams)
        seen.resource = target.subresource ? `${target.kind.plural}/${target.subresource}` : target.kind.plural
        this.access.authorize(account, {
          ...target,
          verb: seen.verb,
          resource: seen.resource,
          group: target.kind.group,
        })
      }
      if (body.length > 0) seen.body = readJson(body, contentType)
      const effect = this.faults.take(seen)
      if (effect && (await misbehave(effect, response))) return
      if (!target) throw notFoundPath()
      if (!/\*\/\*|application\/\*|application\/json/.test(accept))
        throw new Refusal(406, 'NotAcceptable', 'only the following media types are accepted: application/json')
      if (!('kind' in target)) {
        if (method !== 'GET') throw methodNotAllowed()
        if (typeof target.document === 'string') response.end(target.document)
        else send(response, 200, target.document)
        return
      }
      this.#serve(seen, target, url.searchParams, accept, response, effect)
    } catch (error) {
      if (!response.headersSent) refuse(response, error)
      else response.destroy()
    }
  }

  #serve(
    seen: SeenRequest,
    target: Target,
    query: URLSearchParams,
    accept: string,
    response: ServerResponse,
    effect: FaultEffect | undefined,
  ): void {
    const partial = PARTIAL.test(accept)
    if (seen.verb === 'watch') {
      this.#watch(target, query, partial, response)
      return
    }
    const { status, body } = this.#perform(seen, target, query, partial)
    if (effect?.kind === 'drop') response.destroy()
    else send(response, status, body)
  }

  #perform(
    seen: SeenRequest,
    target: Target,
    query: URLSearchParams,
    partial: boolean,
  ): { status: number; body: unknown } {
    const { kind, namespace, name = '', subresource } = target
    const options = { dryRun: dryRun(query) }
    const shape = (object: StoredObject) => (partial ? partialOf(object) : object)
    switch (seen.verb) {
      case 'get':
        return { status: 200, body: shape(this.store.get(kind, namespace, name)) }
      case 'list':
        return { status: 200, body: this.#list(target, query, partial) }
      case 'create':
        return { status: 201, body: this.store.create(kind, namespace, object(seen.body), options) }
      case 'update': {
        const given = object(seen.body)
        checkType(kind, given)
        const metadata = isObject(given.metadata) ? given.metadata : {}
        if (!metadata.name) throw badRequest('name must be provided')
        if (kind.conditionalUpdate && !metadata.resourceVersion)
          throw new Refusal(
            422,
            'Invalid',
            `${kind.kind} "${name}" is invalid: metadata.resourceVersion: Invalid value: "": must be specified for an update`,
            {
              causes: [
                {
                  field: 'metadata.resourceVersion',
                  reason: 'FieldValueInvalid',
                  message: 'must be specified for an update',
                },
              ],
            },
          )
        const { uid } = this.store.get(kind, namespace, name).metadata
        if (metadata.uid && metadata.uid !== uid)
          throw new Refusal(
            409,
            'Conflict',
            `Operation cannot be fulfilled on ${kind.plural} "${name}": Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
          )
        return { status: 200, body: this.store.update(kind, namespace, name, given, { ...options, subresource }) }
      }
      case 'patch':
        return this.#patch(seen, target, query, options)
      case 'delete': {
        const preconditions = isObject(seen.body) ? (seen.body.preconditions as Preconditions | undefined) : undefined
        const { object, gone } = this.store.delete(kind, namespace, name, preconditions, options)
        if (!gone) return { status: 200, body: object }
        const details = { name, kind: kind.plural, uid: object.metadata.uid }
        return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } }
      }
      default:
        throw methodNotAllowed()
    }
  }

  #patch(seen: SeenRequest, target: Target, query: URLSearchParams, options: { dryRun: boolean }) {
    const { kind, namespace, name = '', subresource } = target
    const patch = seen.body ?? null
    const type = seen.contentType?.split(';')[0]?.trim()
    const update = (patched: Json) => ({
      status: 200,
      body: this.store.update(kind, namespace, name, object(patched), { ...options, subresource }),
    })
    switch (type) {
      case 'application/merge-patch+json':
        return update(mergePatch(this.store.get(kind, namespace, name), object(patch)))
      case 'application/json-patch+json':
        return update(jsonPatch(this.store.get(kind, namespace, name), patch))
      case 'application/strategic-merge-patch+json':
        if (!kind.mergeSchema) break
        return update(strategicMerge(this.store.get(kind, namespace, name), object(patch), kind.mergeSchema))
      case 'application/apply-patch+yaml':
        return this.#apply(target, object(patch), query, options)
    }
    throw new Refusal(
      415,
      'UnsupportedMediaType',
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, ' +
        'application/merge-patch+json, application/apply-patch+yaml' +
        (kind.mergeSchema ? ', application/strategic-merge-patch+json' : ''),
    )
  }

  /** Server-side apply without ownership: what is said is merged, by the keys of lists; nothing is ever taken away. */
  #apply(target: Target, applied: JsonObject, query: URLSearchParams, options: { dryRun: boolean }) {
    const { kind, namespace, name = '', subresource } = target
    if (!query.get('fieldManager'))
      throw new Refusal(
        422,
        'Invalid',
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        {
          causes: [
            {
              field: 'fieldManager',
              reason: 'FieldValueRequired',
              message: 'Required value: is required for apply patch',
            },
          ],
        },
      )
    if (applied.apiVersion !== apiVersionOf(kind) || applied.kind !== kind.kind)
      throw badRequest(`the object of an apply patch must name apiVersion ${apiVersionOf(kind)} and kind ${kind.kind}`)
    if (isObject(applied.metadata) && applied.metadata.managedFields)
      throw badRequest('metadata.managedFields must be nil')
    if (!this.store.has(kind, namespace, name)) {
      if (subresource) throw notFound(kind.plural, name)
      const metadata = { ...(isObject(applied.metadata) ? applied.metadata : {}), name }
      return { status: 201, body: this.store.create(kind, namespace, { ...applied, metadata }, options) }
    }
    const present = this.store.get(kind, namespace, name)
    const merged = kind.mergeSchema ? strategicMerge(present, applied, kind.mergeSchema) : mergePatch(present, applied)
    return {
      status: 200,
      body: this.store.update(kind, namespace, name, object(merged), { ...options, subresource }),
    }
  }

  #list({ kind, namespace }: Target, query: URLSearchParams, partial: boolean) {
    const token = query.get('continue')
    const limit = Number(query.get('limit') ?? 0)
    const page = token ? this.#pages.get(token) : this.#firstPage(kind, namespace, query)
    if (!page || !this.store.isKnown(page.version))
      throw expired('The provided continue parameter is too old to display a consistent list result.')
    if (token) this.#pages.delete(token)
    const count = limit > 0 ? limit : page.rest.length
    const items = page.rest.slice(0, count).map((item) => (partial ? partialOf(item) : withoutType(item)))
    const rest = page.rest.slice(count)
    const metadata: JsonObject = { resourceVersion: String(page.version) }
    if (rest.length > 0) {
      metadata.continue = Buffer.from(`page-${++this.#pageNumber}`).toString('base64url')
      metadata.remainingItemCount = rest.length
      this.#pages.set(metadata.continue, { rest, version: page.version })
    }
    return partial
      ? { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata, items }
      : { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata, items }
  }

  #firstPage(kind: Kind, namespace: string | undefined, query: URLSearchParams): Page {
    const wanted = Number(query.get('resourceVersion') ?? 0)
    if (wanted > this.store.version) throw tooLarge(wanted, this.store.version)
    const label = labelMatcher(query.get('labelSelector'))
    const field = fieldMatcher(query.get('fieldSelector'), kind)
    const rest = this.store.list(kind, namespace).filter((one) => label(one) && field(one))
    return { rest, version: this.store.version }
  }

  #watch({ kind, namespace, name }: Target, query: URLSearchParams, partial: boolean, response: ServerResponse): void {
    if (query.get('sendInitialEvents') === 'true')
      throw new Refusal(
        422,
        'Invalid',
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
      )
    const resourceVersion = query.get('resourceVersion') ?? undefined
    if (resourceVersion !== undefined && !/^\d*$/.test(resourceVersion))
      throw badRequest(`Invalid value: "${resourceVersion}": strconv.ParseUint: parsing: invalid syntax`)
    if (Number(resourceVersion ?? 0) > this.store.version) throw tooLarge(Number(resourceVersion), this.store.version)
    const label = labelMatcher(query.get('labelSelector'))
    const field = fieldMatcher(query.get('fieldSelector') ?? (name ? `metadata.name=${name}` : null), kind)
    this.watches.start(
      {
        kind,
        namespace,
        resourceVersion,
        bookmarks: query.get('allowWatchBookmarks') === 'true',
        timeoutSeconds: Number(query.get('timeoutSeconds') || 1800 + Math.random() * 1800),
        matches: (object) => label(object) && field(object),
        shape: (object) => (partial ? partialOf(object) : object),
      },
      response,
    )
  }

  /** The object or collection that a path names, a document of the discovery, or nothing. */
  #route(path: string): Target | { document: unknown } | undefined {
    const document = this.#document(path)
    if (document !== undefined) return { document }
    const parsed = /^\/(?:api|apis\/([^/]+))\/([^/]+)\/(.+)$/.exec(path)
    if (!parsed) return undefined
    const [, group = '', version, tail = ''] = parsed
    const parts = tail.split('/').map(decodeURIComponent)
    const inNamespace =
      parts[0] === 'namespaces' && parts.length >= 3 && !['status', 'finalize'].includes(parts[2] ?? '')
    const namespace = inNamespace ? parts[1] : undefined
    const [plural, name, subresource, more] = inNamespace ? parts.slice(2) : parts
    const kind = this.#kinds.find((one) => one.group === group && one.version === version && one.plural === plural)
    if (!kind || more !== undefined || kind.namespaced !== (inNamespace || (kind.namespaced && name === undefined)))
      return undefined
    if (subresource !== undefined && !(subresource === 'status' && kind.status)) return undefined
    return { kind, namespace, name, subresource }
  }

  #document(path: string): unknown {
    if (path === '/healthz' || path === '/readyz' || path === '/livez') return 'ok'
    if (path === '/version') return { major: '1', minor: '36', gitVersion: 'v1.36.0+simulator', platform: 'simulator' }
    if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
    const groups = [...new Set(this.#kinds.filter(({ group }) => group !== '').map(apiVersionOf))]
    if (path === '/apis')
      return {
        kind: 'APIGroupList',
        apiVersion: 'v1',
        groups: groups.map((groupVersion) => {
          const [name, version] = groupVersion.split('/')
          return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } }
        }),
      }
    const groupVersion = /^\/(?:api|apis)\/(.+)$/.exec(path)?.[1]
    const kinds = this.#kinds.filter((kind) => apiVersionOf(kind) === groupVersion)
    if (kinds.length === 0) return undefined
    const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']
    return {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion,
      resources: kinds.flatMap(({ plural, kind, namespaced, status }) => [
        { name: plural, singularName: kind.toLowerCase(), namespaced, kind, verbs },
        ...(status
          ? [{ name: `${plural}/status`, singularName: '', namespaced, kind, verbs: ['get', 'patch', 'update'] }]
          : []),
      ]),
    }
  }

  /** `/_sim/…`: what tests in this process do by method calls, for others. */
  #control(method: string, path: string, body: Buffer): unknown {
    const given = (body.length > 0 ? JSON.parse(body.toString()) : {}) as JsonObject & { plural?: string }
    switch (`${method} ${path}`) {
      case 'GET /_sim/requests':
        return this.requests
      case 'GET /_sim/state':
        return { version: this.store.version, watches: this.watches.count }
      case 'POST /_sim/faults':
        return this.faults.add(given as unknown as Fault)
      case 'DELETE /_sim/faults':
        return this.faults.clear()
      case 'POST /_sim/watches/freeze':
        return this.watches.freeze(given.plural)
      case 'POST /_sim/watches/drop':
        return this.watches.drop(given.plural)
      case 'POST /_sim/watches/finish':
        return this.watches.finish(given.plural)
      case 'POST /_sim/history/compact':
        return this.store.compact()
      case 'POST /_sim/continue/expire':
        return this.expireContinueTokens()
      default:
        throw notFoundPath()
    }
  }
}

function verbOf(method: string, { name, subresource }: Target, query: URLSearchParams): string {
  const watches = query.get('watch') === 'true' || query.get('watch') === '1'
  switch (method) {
    case 'GET':
      return watches && !subresource ? 'watch' : name === undefined ? 'list' : 'get'
    case 'POST':
      return name === undefined ? 'create' : 'none'
    case 'PUT':
      return name === undefined ? 'none' : 'update'
    case 'PATCH':
      return name === undefined ? 'none' : 'patch'
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete'
    default:
      return 'none'
  }
}

/** True when the fault has taken the place of the answer. */
async function misbehave(effect: FaultEffect, response: ServerResponse): Promise<boolean> {
  switch (effect.kind) {
    case 'status': {
      const { status, reason = '', message = `the simulator was told to answer ${status}`, retryAfterSeconds } = effect
      if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds))
      refuse(response, new Refusal(status, reason, message))
      return true
    }
    case 'body':
      response.writeHead(effect.status, { 'content-type': effect.contentType }).end(effect.body)
      return true
    case 'gone':
      refuse(response, expired('The resourceVersion for the provided list or watch is too old.'))
      return true
    case 'hang':
      return true
    case 'delay':
      await new Promise((resolve) => setTimeout(resolve, effect.ms))
      return response.destroyed
    case 'drop':
      if (effect.afterEffect) return false
      response.destroy()
      return true
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const refusal = error instanceof Refusal ? error : new Refusal(500, 'InternalError', String(error))
  if (refusal.code === 429) response.setHeader('retry-after', response.getHeader('retry-after') ?? '1')
  send(response, refusal.code, refusal.toStatus())
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
  }
  if (length > MAX_BODY_BYTES)
    throw new Refusal(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`)
  return Buffer.concat(chunks)
}

function readJson(body: Buffer, contentType = 'application/json'): Json {
  try {
    if (/yaml/.test(contentType)) return parseYaml(body.toString()) as Json
    if (!/json/.test(contentType))
      throw new Refusal(
        415,
        'UnsupportedMediaType',
        `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml`,
      )
    return JSON.parse(body.toString()) as Json
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw badRequest(`the object provided is unrecognized: ${error instanceof Error ? error.message : error}`)
  }
}

function object(value: Json | undefined): JsonObject {
  if (!isObject(value)) throw badRequest('the object provided is unrecognized (must be of type object)')
  return value
}

function dryRun(query: URLSearchParams): boolean {
  const wanted = query.get('dryRun')
  if (wanted !== null && wanted !== 'All') throw badRequest(`invalid dryRun: "${wanted}", supported values: "All"`)
  return wanted === 'All'
}

function methodNotAllowed(): Refusal {
  return new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

function tooLarge(wanted: number, current: number): Refusal {
  return new Refusal(504, 'Timeout', `Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

function partialOf({ metadata }: StoredObject) {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
}

function withoutType({ apiVersion, kind, ...rest }: StoredObject) {
  return rest
}
