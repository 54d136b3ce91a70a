import type { KubernetesSettings } from '../config/types.ts'
import { HttpClient, type HttpClientOptions, type HttpResponse, type HttpStream } from '../http/client.ts'
import type { Logger } from '../telemetry/log.ts'
import { type Access, type Authentication, loadAccess, SERVICE_ACCOUNT_DIR, type Surroundings } from './credentials.ts'

export interface KubernetesRequest {
  method: string
  /** Path of the API, without query. */
  path: string
  /** Undefined values are left out. */
  query?: Record<string, string | undefined>
  headers?: Record<string, string>
  body?: string
  timeoutMs: number
  signal?: AbortSignal
  maxBytes?: number
  /** Before it is sent once more with credentials that were read anew, which may have taken long; throws if it must not be. */
  beforeResend?(): Promise<void>
}

/** Credentials that were refused are not read again more often than this. */
const RELOAD_INTERVAL_MS = 5_000
/** Time that requests under way have before the connections of replaced certificates close. */
const RETIRE_AFTER_MS = 30_000

/**
 * Finds the API server and our credentials (kubeconfig, or the Pod's service account). Sends nothing yet.
 * Throws `permanent`, with what to change, for settings that can't work.
 */
export async function connect(
  settings: KubernetesSettings,
  log: Logger,
  surroundings: Partial<Surroundings> = {},
): Promise<KubernetesConnection> {
  const { env = process.env, serviceAccountDir = SERVICE_ACCOUNT_DIR } = surroundings
  const load = () => loadAccess(settings, { env, serviceAccountDir }, log)
  return new KubernetesConnection(await load(), load, env, log)
}

/**
 * One API server with keep-alive connections and live credentials: tokens in files are read again when they change, plugins
 * are asked when theirs expire, and on a 401 everything is read anew and the request sent once more.
 */
export class KubernetesConnection {
  #access: Access
  #client: HttpClient
  #clientKey: string
  #generation = 0
  #reloadedAtMs = Number.NEGATIVE_INFINITY
  #reloading: Promise<void> | undefined
  #used: { access: Access; tls: Authentication['tls'] }
  readonly #load: () => Promise<Access>
  readonly #env: NodeJS.ProcessEnv
  readonly #log: Logger
  readonly #retired = new Map<HttpClient, NodeJS.Timeout>()

  constructor(access: Access, load: () => Promise<Access>, env: NodeJS.ProcessEnv, log: Logger) {
    this.#access = access
    this.#load = load
    this.#env = env
    this.#log = log
    const options = this.#clientOptions({ headers: {} })
    this.#clientKey = keyOf(options)
    this.#client = new HttpClient(options)
    this.#used = { access, tls: undefined }
  }

  /** Base URL, for messages. */
  get server(): string {
    return this.#access.server
  }

  /** Whom to believe to be this API server, without any of our credentials. */
  get trust(): { host: string } & Pick<HttpClientOptions, 'ca' | 'insecureSkipVerify'> {
    const { server, tls } = this.#access
    const host = tls.servername ?? new URL(server).hostname.replace(/^\[|\]$/g, '')
    const { ca, insecureSkipVerify } = tls
    return { host, ...(ca ? { ca } : {}), ...(insecureSkipVerify ? { insecureSkipVerify } : {}) }
  }

  async request(request: KubernetesRequest): Promise<HttpResponse> {
    const generation = this.#generation
    const answer = await this.#send(request, (client, sent) => client.request(sent))
    if (answer.status !== 401 || !(await this.#renew(generation))) return answer
    await request.beforeResend?.()
    return this.#send(request, (client, sent) => client.request(sent))
  }

  async stream(request: KubernetesRequest): Promise<HttpStream> {
    const generation = this.#generation
    const answer = await this.#send(request, (client, sent) => client.stream(sent))
    if (answer.status !== 401 || !(await this.#renew(generation))) return answer
    answer.destroy()
    return this.#send(request, (client, sent) => client.stream(sent))
  }

  close(): void {
    this.#client.close()
    for (const [client, timer] of this.#retired) {
      clearTimeout(timer)
      client.close()
    }
    this.#retired.clear()
  }

  async #send<T>(
    { path, query = {}, headers, beforeResend: _, ...rest }: KubernetesRequest,
    send: (client: HttpClient, sent: Parameters<HttpClient['request']>[0]) => Promise<T>,
  ): Promise<T> {
    const authentication = await this.#access.authenticate()
    const client = this.#clientFor(authentication)
    const url = new URL(`${this.#access.server}${path}`)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
    return send(client, {
      ...rest,
      url,
      headers: { 'user-agent': 'windlass', ...headers, ...authentication.headers },
    })
  }

  #clientFor(authentication: Authentication): HttpClient {
    const { access, tls } = this.#used
    if (access === this.#access && tls === authentication.tls) return this.#client
    this.#used = { access: this.#access, tls: authentication.tls }
    const options = this.#clientOptions(authentication)
    const key = keyOf(options)
    if (key === this.#clientKey) return this.#client
    const retired = this.#client
    const timer = setTimeout(() => {
      this.#retired.delete(retired)
      retired.close()
    }, RETIRE_AFTER_MS).unref()
    this.#retired.set(retired, timer)
    this.#client = new HttpClient(options)
    this.#clientKey = key
    return this.#client
  }

  #clientOptions({ tls }: Authentication): HttpClientOptions {
    const { proxyUrl } = this.#access
    return {
      ...this.#access.tls,
      ...tls,
      proxyEnv: proxyUrl ? { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl } : this.#env,
    }
  }

  /** True when the credentials are newer now than those of `generation`. */
  async #renew(generation: number): Promise<boolean> {
    if (generation !== this.#generation) return true
    if (!this.#reloading && performance.now() - this.#reloadedAtMs < RELOAD_INTERVAL_MS) return false
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined
    })
    await this.#reloading
    return generation !== this.#generation
  }

  async #reload(): Promise<void> {
    this.#reloadedAtMs = performance.now()
    try {
      this.#access = await this.#load()
      this.#generation++
      this.#log.info({ server: this.server }, 'Kubernetes refused our credentials, they were read again')
    } catch (error) {
      this.#log.warn({ err: error }, 'Kubernetes refused our credentials, and they cannot be read again')
    }
  }
}

function keyOf(options: HttpClientOptions): string {
  const text = (value: string | Buffer | undefined) => value?.toString() ?? ''
  const { ca, cert, key, servername = '', insecureSkipVerify = false, proxyEnv } = options
  return [text(ca), text(cert), text(key), servername, insecureSkipVerify, proxyEnv?.HTTPS_PROXY ?? ''].join('\0')
}
