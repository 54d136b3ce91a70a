import http from 'node:http'
import https from 'node:https'
import { getCACertificates } from 'node:tls'
import { aborted, transient } from '../errors.ts'
import { inDetail, isTracing } from '../telemetry/traces.ts'

export interface HttpClientOptions {
  /** PEM of certificate authorities that are trusted instead of the public ones. */
  ca?: string | Buffer
  /** PEM of certificate authorities that are trusted beside those of the system, `NODE_EXTRA_CA_CERTS` included. */
  extraCa?: string | Buffer
  cert?: string | Buffer
  key?: string | Buffer
  /** Name in the server's certificate, where it is not the host of the URL. */
  servername?: string
  insecureSkipVerify?: boolean
  /** Connections to one host at a time. */
  maxSockets?: number
  /** Where `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are read; the process' environment if absent. */
  proxyEnv?: NodeJS.ProcessEnv
}

export interface HttpRequest {
  method: string
  url: string | URL
  headers?: Record<string, string>
  body?: string | Buffer
  /** Milliseconds for the whole exchange; of a stream, until its headers are there. */
  timeoutMs: number
  signal?: AbortSignal
  /** Longest answer that is accepted, in bytes. */
  maxBytes?: number
}

export interface HttpResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
}

export interface HttpStream {
  status: number
  headers: http.IncomingHttpHeaders
  /** Fails with `transient` when the connection breaks. */
  body: AsyncIterable<Buffer>
  destroy(): void
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * HTTP with connections kept alive, over `node:http`: the layer under the clients of Kubernetes and the clouds.
 * Any status is an answer. No answer (refused, reset, timed out, cut off) is thrown as `transient` with the system's code;
 * a signal that fires is thrown as `aborted`.
 */
export class HttpClient {
  readonly #http: http.Agent
  readonly #https: https.Agent

  constructor(options: HttpClientOptions = {}) {
    const { maxSockets = 64, proxyEnv = process.env } = options
    // What was opened for a burst is kept for the next one: a TLS handshake costs more than many requests.
    const keepAlive = { keepAlive: true, keepAliveMsecs: 15_000, maxSockets, maxFreeSockets: maxSockets, proxyEnv }
    this.#http = new http.Agent(keepAlive)
    this.#https = new https.Agent({
      ...keepAlive,
      ...(options.ca
        ? { ca: options.ca }
        : options.extraCa
          ? { ca: [...getCACertificates('default'), options.extraCa.toString()] }
          : {}),
      ...(options.cert ? { cert: options.cert } : {}),
      ...(options.key ? { key: options.key } : {}),
      ...(options.servername ? { servername: options.servername } : {}),
      ...(options.insecureSkipVerify ? { rejectUnauthorized: false } : {}),
    })
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    if (!isTracing()) return await this.#request(request)
    const { method, url } = request
    const { host, pathname } = new URL(url)
    const attributes = { 'http.request.method': method, 'server.address': host, 'url.path': pathname }
    return await inDetail(method, { kind: 'CLIENT', attributes }, async (span) => {
      const response = await this.#request(request)
      span.set({ 'http.response.status_code': response.status })
      return response
    })
  }

  async #request(request: HttpRequest): Promise<HttpResponse> {
    const { method, url, timeoutMs, maxBytes = MAX_ANSWER_BYTES } = request
    const { message, timer, release } = await this.#open(request, timeoutMs)
    try {
      const chunks: Buffer[] = []
      let length = 0
      for await (const chunk of message as AsyncIterable<Buffer>) {
        length += chunk.length
        if (length > maxBytes) {
          message.destroy()
          throw transient(`${method} ${place(url)}: the answer is longer than ${maxBytes} bytes`, { code: 'too-long' })
        }
        chunks.push(chunk)
      }
      return { status: message.statusCode ?? 0, headers: message.headers, body: Buffer.concat(chunks) }
    } catch (error) {
      throw failure(error, request)
    } finally {
      clearTimeout(timer)
      release()
    }
  }

  async stream(request: HttpRequest): Promise<HttpStream> {
    const { message, timer, release } = await this.#open(request, request.timeoutMs)
    clearTimeout(timer)
    message.once('close', release)
    async function* body() {
      try {
        yield* message as AsyncIterable<Buffer>
      } catch (error) {
        throw failure(error, request)
      }
    }
    return {
      status: message.statusCode ?? 0,
      headers: message.headers,
      body: body(),
      destroy: () => message.destroy(),
    }
  }

  close(): void {
    this.#http.destroy()
    this.#https.destroy()
  }

  #open(request: HttpRequest, timeoutMs: number) {
    const { method, url, headers, body, signal } = request
    const secure = new URL(url).protocol === 'https:'
    return new Promise<{ message: http.IncomingMessage; timer: NodeJS.Timeout; release: () => void }>(
      (resolve, reject) => {
        if (signal?.aborted) {
          reject(aborted(`${method} ${place(url)}: not sent, the run was stopped`, { cause: signal.reason }))
          return
        }
        const send = secure ? https.request : http.request
        const outgoing = send(url, {
          method,
          agent: secure ? this.#https : this.#http,
          headers: {
            ...headers,
            ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
          },
        })
        const timer = setTimeout(
          () => outgoing.destroy(new CodedError('timeout', `no answer within ${timeoutMs} ms`)),
          timeoutMs,
        )
        const onAbort = () => outgoing.destroy(new CodedError('aborted', 'the run was stopped'))
        signal?.addEventListener('abort', onAbort, { once: true })
        const release = () => signal?.removeEventListener('abort', onAbort)
        outgoing.once('error', (error: Error & { code?: string }) => {
          clearTimeout(timer)
          release()
          // A kept connection that the peer closed while the request was on its way: nobody has read it, and a read can go again.
          if (method === 'GET' && outgoing.reusedSocket && error.code === 'ECONNRESET')
            resolve(this.#open(request, timeoutMs))
          else reject(failure(error, request))
        })
        outgoing.once('response', (message) => {
          // TCP keep-alive finds a peer that vanished without a word, also below a stream on which nothing is sent.
          message.socket.setKeepAlive(true, 15_000)
          resolve({ message, timer, release })
        })
        outgoing.end(body)
      },
    )
  }
}

class CodedError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

function failure(error: unknown, { method, url, signal }: HttpRequest) {
  if (error instanceof Error && error.name === 'WindlassError') return error
  const code = (error as { code?: string }).code
  if (signal?.aborted || code === 'aborted')
    return aborted(`${method} ${place(url)}: stopped on the way`, { cause: error, code: 'aborted' })
  const text = error instanceof Error ? error.message || code : String(error)
  return transient(`${method} ${place(url)}: no answer: ${text}`, { cause: undefined, ...(code ? { code } : {}) })
}

/** Host and path: a query may hold what belongs in no message. */
function place(url: string | URL): string {
  const { host, pathname } = new URL(url)
  return `${host}${pathname}`
}
