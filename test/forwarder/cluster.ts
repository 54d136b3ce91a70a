import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'

type Held = KubeNode | KubeService
type Collection = 'nodes' | 'services'

/** The lists and watches of an API server, of Nodes and Services only, whose history can be cut. */
export class Cluster {
  readonly url: string
  lists = 0
  /** Answers to new lists and watches, as long as it is set. */
  down = false
  readonly #server: http.Server
  readonly #objects = { nodes: new Map<string, Held>(), services: new Map<string, Held>() }
  readonly #watches = { nodes: new Set<http.ServerResponse>(), services: new Set<http.ServerResponse>() }
  readonly #history: { version: number; collection: Collection; line: string }[] = []
  readonly #pages = new Map<string, { version: number; all: Held[] }>()
  #version = 100
  #oldest = 0
  #uids = 0

  private constructor(server: http.Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(t?: Test): Promise<Cluster> {
    const server = http.createServer((request, response) => cluster.#answer(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const cluster = new Cluster(server)
    t?.teardown(() => cluster.close())
    return cluster
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  get nodes(): KubeNode[] {
    return [...this.#objects.nodes.values()] as KubeNode[]
  }

  get services(): KubeService[] {
    return [...this.#objects.services.values()] as KubeService[]
  }

  putNode(name: string, change: (node: KubeNode) => KubeNode = (node) => node): void {
    this.#put('nodes', name, change(this.#now('nodes', name) as KubeNode))
  }

  putService(name: string, change: (service: KubeService) => KubeService = (service) => service): void {
    const now = (this.#objects.services.get(name) ?? {
      metadata: this.#metadata(name, 'default'),
      spec: {},
    }) as KubeService
    this.#put('services', name, change(now))
  }

  remove(collection: Collection, name: string): void {
    const object = this.#objects[collection].get(name)
    if (!object) return
    this.#objects[collection].delete(name)
    this.#tell(collection, 'DELETED', object)
  }

  /** Ends all watches; with `forget`, none can go on from where it was. */
  breakWatches(forget = false): void {
    if (forget) this.#oldest = ++this.#version
    for (const watches of Object.values(this.#watches)) for (const response of watches) response.destroy()
  }

  bookmark(collections: readonly Collection[] = ['nodes', 'services']): void {
    for (const collection of collections) {
      const object = { metadata: { resourceVersion: String(this.#version) } }
      for (const response of this.#watches[collection])
        response.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
    }
  }

  #now(collection: Collection, name: string): Held {
    return this.#objects[collection].get(name) ?? ({ metadata: this.#metadata(name) } as Held)
  }

  #metadata(name: string, namespace?: string) {
    const uid = `uid-${++this.#uids}`
    return { name, ...(namespace ? { namespace } : {}), uid, creationTimestamp: '2026-01-02T03:04:05Z' }
  }

  #put(collection: Collection, name: string, object: Held): void {
    this.#tell(collection, this.#objects[collection].has(name) ? 'MODIFIED' : 'ADDED', object)
  }

  #tell(collection: Collection, type: string, changed: Held): void {
    const version = ++this.#version
    const object = { ...changed, metadata: { ...changed.metadata, resourceVersion: String(version) } } as Held
    if (type !== 'DELETED') this.#objects[collection].set(object.metadata.name, object)
    const line = `${JSON.stringify({ type, object })}\n`
    this.#history.push({ version, collection, line })
    if (this.#history.length > 1000) this.#oldest = this.#history.shift()?.version ?? 0
    for (const response of this.#watches[collection]) response.write(line)
  }

  #answer(request: http.IncomingMessage, response: http.ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url)
    const collection = url.pathname.endsWith('/nodes') ? 'nodes' : 'services'
    if (this.down) {
      response.writeHead(503).end()
    } else if (url.searchParams.get('watch')) {
      const from = Number(url.searchParams.get('resourceVersion'))
      if (from < this.#oldest) {
        response.writeHead(410).end('{"kind":"Status","code":410}')
        return
      }
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
      for (const past of this.#history)
        if (past.collection === collection && past.version > from) response.write(past.line)
      this.#watches[collection].add(response)
      response.on('close', () => this.#watches[collection].delete(response))
    } else {
      const token = url.searchParams.get('continue')
      if (!token) this.lists++
      // All pages of a list are of one version.
      const { version, all } = this.#pages.get(token ?? '') ?? {
        version: this.#version,
        all: [...this.#objects[collection].values()],
      }
      const from = Number(token?.split('/')[1] ?? 0)
      const to = from + (Number(url.searchParams.get('limit')) || all.length)
      const next = `${collection}-${version}/${to}`
      if (token) this.#pages.delete(token)
      if (to < all.length) this.#pages.set(next, { version, all })
      const metadata = { resourceVersion: String(version), ...(to < all.length ? { continue: next } : {}) }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ metadata, items: all.slice(from, to) }))
    }
  }
}
