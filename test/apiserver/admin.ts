import { Agent, request } from 'node:https'
import { isNamespaced, pathOf } from './kinds.ts'

/** An object as it travels in JSON. Tests reach anywhere into it, so it is as loose as JSON is. */
// biome-ignore lint/suspicious/noExplicitAny: what a test asserts is the type check here
export type Json = any

export interface AdminCredentials {
  /** `https://127.0.0.1:…` */
  url: string
  /** PEM */
  ca: string
  token: string
}

/** What the API server answered with a status of 400 or more. */
export class ApiRefusal extends Error {
  readonly status: number
  readonly body: Json

  constructor(what: string, status: number, body: Json) {
    super(`${what}: ${status} ${body?.message ?? ''}`)
    this.status = status
    this.body = body
  }
}

export type PatchType = 'merge' | 'json' | 'strategic'
export type Admin = ReturnType<typeof adminClient>

/** A small Kubernetes client for tests: all rights, no watch, no discovery, no retries. */
export function adminClient({ url, ca, token }: AdminCredentials) {
  const agent = new Agent({ keepAlive: true, ca, maxSockets: 8 })

  function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Json> {
    const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    return new Promise((resolve, reject) => {
      const outgoing = request(new URL(url + path), {
        method,
        agent,
        timeout: 20_000,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json',
          ...(data && { 'content-type': 'application/json', 'content-length': data.byteLength }),
          ...headers,
        },
      })
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer in 20 s`)))
      outgoing.on('error', reject)
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const answer = parse(Buffer.concat(chunks).toString())
          const status = response.statusCode ?? 0
          if (status < 400) resolve(answer)
          else reject(new ApiRefusal(`${method} ${path}`, status, answer))
        })
      })
      outgoing.end(data)
    })
  }

  async function get(kind: string, namespace: string | undefined, name: string): Promise<Json | undefined> {
    return await send('GET', pathOf(kind, namespace, name)).catch(undefinedIfMissing)
  }

  async function patch(
    kind: string,
    namespace: string | undefined,
    name: string,
    body: unknown,
    type: PatchType = 'merge',
    subresource?: string,
  ): Promise<Json> {
    const format = type === 'json' ? 'json-patch' : type === 'merge' ? 'merge-patch' : 'strategic-merge-patch'
    const headers = { 'content-type': `application/${format}+json` }
    return await send('PATCH', pathOf(kind, namespace, name, subresource), body, headers)
  }

  return {
    send,
    get,
    patch,

    list: async (kind: string, namespace?: string): Promise<Json[]> =>
      (await send('GET', pathOf(kind, namespace))).items ?? [],

    /** Only `metadata` of each object. */
    listMetadata: async (kind: string): Promise<Json[]> =>
      (
        await send('GET', pathOf(kind), undefined, {
          accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
        })
      ).items ?? [],

    create: (kind: string, namespace: string | undefined, object: unknown): Promise<Json> =>
      send('POST', pathOf(kind, namespace), object),

    /** Server-side apply, as `kubectl apply --server-side --force-conflicts` does it. */
    apply: (kind: string, namespace: string | undefined, name: string, object: unknown): Promise<Json> =>
      send('PATCH', `${pathOf(kind, namespace, name)}?fieldManager=test&force=true`, object, {
        'content-type': 'application/apply-patch+yaml',
      }),

    /** Rejects with `ApiRefusal` 404 if there is none. */
    delete: (kind: string, namespace: string | undefined, name: string): Promise<Json> =>
      send('DELETE', pathOf(kind, namespace, name)),

    deleteAll: (kind: string, namespace?: string): Promise<Json> => send('DELETE', pathOf(kind, namespace)),

    /**
     * A Node as a kubelet would register it: labels, Ready=True and, unless `x-initialized: true`, the taint that waits
     * for a cloud controller.
     */
    async createNode(manifest: Json): Promise<void> {
      const { node, status } = nodeDefaults(manifest)
      await send('POST', pathOf('Node'), node)
      await patch('Node', undefined, node.metadata.name, { status }, 'merge', 'status')
    },

    close: () => agent.destroy(),
  }
}

/** The namespace that a manifest means. */
export function namespaceOf(kind: string, namespace?: string): string | undefined {
  return isNamespaced(kind) ? (namespace ?? 'default') : undefined
}

export function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiRefusal) || error.status !== 404) throw error
}

const uninitializedTaint = 'node.cloudprovider.kubernetes.io/uninitialized'

/** Fills a short Node manifest; its status is to be written apart. */
export function nodeDefaults(manifest: Json): { node: Json; status: Json } {
  const { status: given = {}, 'x-initialized': initialized, ...node } = structuredClone(manifest)
  const { name } = node.metadata
  node.apiVersion ??= 'v1'
  node.metadata.labels = {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    ...node.metadata.labels,
  }
  node.spec ??= {}
  const taints: Json[] = node.spec.taints ?? []
  if (initialized !== true && !taints.some((taint) => taint.key === uninitializedTaint)) {
    node.spec.taints = [...taints, { key: uninitializedTaint, value: 'true', effect: 'NoSchedule' }]
  }

  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const conditions: Json[] = given.conditions ?? [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }]
  const capacity = given.capacity ?? { cpu: '2', memory: '4Gi', pods: '110' }
  const status = {
    nodeInfo: {
      machineID: `m-${name}`,
      systemUUID: `u-${name}`,
      bootID: `b-${name}`,
      kernelVersion: '6.1.0',
      osImage: 'Debian GNU/Linux 12',
      containerRuntimeVersion: 'containerd://2.0.0',
      kubeletVersion: 'v1.36.3',
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: 'amd64',
    },
    allocatable: capacity,
    ...given,
    capacity,
    conditions: conditions.map((condition) => ({
      lastHeartbeatTime: now,
      lastTransitionTime: now,
      reason: 'Test',
      message: 'set by the test',
      ...condition,
    })),
  }
  return { node, status }
}

function parse(text: string): Json {
  try {
    return text ? JSON.parse(text) : undefined
  } catch {
    return { message: text }
  }
}

function undefinedIfMissing(error: unknown): undefined {
  ignoreMissing(error)
}
