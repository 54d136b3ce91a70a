import type { RequestOptions } from 'node:https'
import { messageOf, transient } from '../errors.ts'
import type { Authentication } from './credentials.ts'
import { type KubeconfigContext, writeUserKubeconfig } from './kubeconfig.ts'

/** An answer of the plugin is asked for again after this; client-node itself caches until the credential expires. */
const MAX_AGE_MS = 10_000
const PLUGIN_TIMEOUT_MS = 60_000

/**
 * Credentials from an exec plugin or an auth provider (OIDC), by client-node. It is loaded only here, since it costs 90 MB
 * of memory that a forwarder with plain credentials does not have.
 */
export function pluginAuthenticator(context: KubeconfigContext & { server: string }): () => Promise<Authentication> {
  let loaded: Promise<{ applyToHTTPSOptions(options: RequestOptions): Promise<void> }> | undefined
  let last: { answer: Promise<Authentication>; askedAtMs: number } | undefined

  async function ask(): Promise<Authentication> {
    loaded ??= load(context)
    const config = await loaded
    const options: RequestOptions = {}
    try {
      await withTimeout(config.applyToHTTPSOptions(options))
    } catch (error) {
      throw transient(
        `The credential plugin of user "${context.userName}" in the kubeconfig failed: ${messageOf(error)}`,
      )
    }
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value)
    const { cert, key } = options as { cert?: string | Buffer; key?: string | Buffer }
    return { headers, ...(cert && key ? { tls: { cert, key } } : {}) }
  }

  return () => {
    if (last && performance.now() - last.askedAtMs < MAX_AGE_MS) return last.answer
    const asked = { answer: ask(), askedAtMs: performance.now() }
    last = asked
    asked.answer.catch(() => {
      if (last === asked) last = undefined
    })
    return asked.answer
  }
}

async function load(context: KubeconfigContext & { server: string }) {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromString(writeUserKubeconfig(withExecInfo(context)))
  return config
}

/** Plugins expect `KUBERNETES_EXEC_INFO`, which client-node does not set. */
function withExecInfo(context: KubeconfigContext & { server: string }): KubeconfigContext {
  const { exec } = context.user
  if (!exec) return context
  const info = {
    apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec.provideClusterInfo ? { cluster: clusterInfo(context) } : {}) },
  }
  const env = [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }]
  return { ...context, user: { ...context.user, exec: { ...exec, env } } }
}

function clusterInfo({ server, cluster }: KubeconfigContext & { server: string }) {
  return {
    server,
    ...(cluster['certificate-authority-data']
      ? { 'certificate-authority-data': cluster['certificate-authority-data'] }
      : {}),
    ...(cluster['tls-server-name'] ? { 'tls-server-name': cluster['tls-server-name'] } : {}),
    ...(cluster['insecure-skip-tls-verify'] ? { 'insecure-skip-tls-verify': true } : {}),
  }
}

async function withTimeout(work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`it gave no answer within ${PLUGIN_TIMEOUT_MS / 1000} s`)),
    PLUGIN_TIMEOUT_MS,
  )
  try {
    await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
