import { join } from 'node:path'
import { readFile } from '../config/read-file.ts'
import type { KubernetesSettings } from '../config/types.ts'
import { messageOf, permanent, transient } from '../errors.ts'
import type { HttpClientOptions } from '../http/client.ts'
import type { Logger } from '../telemetry/log.ts'
import type { KubeconfigContext, UserEntry } from './kubeconfig.ts'

/** How to reach one API server, and as whom. */
export interface Access {
  /** Base URL without trailing slash. */
  server: string
  tls: TlsMaterial
  proxyUrl?: string
  /** Headers that say who asks, and what a plugin adds for TLS; cheap to call before each request. */
  authenticate(): Promise<Authentication>
}

export type TlsMaterial = Pick<HttpClientOptions, 'ca' | 'cert' | 'key' | 'servername' | 'insecureSkipVerify'>

export interface Authentication {
  headers: Record<string, string>
  tls?: Pick<TlsMaterial, 'cert' | 'key'>
}

export interface Surroundings {
  env: NodeJS.ProcessEnv
  /** Where a Pod finds the token and CA of its service account. */
  serviceAccountDir: string
}

export const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Kubelet replaces the token long before it expires; this is how soon the new one is used. */
const TOKEN_FILE_MAX_AGE_MS = 10_000

/** Reads everything anew: kubeconfig files, or the service account of the Pod. Throws `permanent` with what to change. */
export async function loadAccess(
  settings: KubernetesSettings,
  surroundings: Surroundings,
  log: Logger,
): Promise<Access> {
  const access = settings.kubeconfig?.length
    ? await fromKubeconfig(await readContext(settings.kubeconfig, settings.context), settings.server, log)
    : inCluster(surroundings, settings.server, log)
  return { ...access, server: checkServer(access.server) }
}

/** The YAML parser costs 8 MB, which a Pod with a service account need not pay. */
async function readContext(paths: readonly string[], context: string | undefined): Promise<KubeconfigContext> {
  const { readKubeconfigs, resolveContext } = await import('./kubeconfig.ts')
  return resolveContext(readKubeconfigs(paths), context)
}

function inCluster({ env, serviceAccountDir }: Surroundings, server: string | undefined, log: Logger): Access {
  const host = env.KUBERNETES_SERVICE_HOST
  const port = env.KUBERNETES_SERVICE_PORT
  const tokenPath = join(serviceAccountDir, 'token')
  if (!host || !port) {
    if (server === undefined)
      throw permanent(
        'No kubeconfig is set, and this is not a Pod with a service account (KUBERNETES_SERVICE_HOST and ' +
          'KUBERNETES_SERVICE_PORT are not set): set the path of a kubeconfig',
      )
    return { server, tls: {}, authenticate: async () => ({ headers: {} }) }
  }
  const token = tokenFile(tokenPath, log)
  token.read()
  return {
    server: server ?? `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    tls: { ca: materialAt(join(serviceAccountDir, 'ca.crt'), 'the CA of the service account') },
    authenticate: async () => ({ headers: { authorization: `Bearer ${token.read()}` } }),
  }
}

async function fromKubeconfig(
  context: KubeconfigContext,
  serverOverride: string | undefined,
  log: Logger,
): Promise<Access> {
  const { cluster, user, userName, clusterName } = context
  const server = serverOverride ?? cluster.server
  if (!server) throw permanent(`Cluster "${clusterName}" of the kubeconfig has no server`)
  refuseUnsupported(context)
  const insecure = cluster['insecure-skip-tls-verify'] === true
  const ca = material(cluster['certificate-authority'], cluster['certificate-authority-data'], 'certificate-authority')
  const cert = material(user['client-certificate'], user['client-certificate-data'], 'client-certificate')
  const key = material(user['client-key'], user['client-key-data'], 'client-key')
  if ((cert === undefined) !== (key === undefined))
    throw permanent(`User "${userName}" of the kubeconfig has a client certificate without its key, or a key alone`)
  const servername = cluster['tls-server-name']
  const proxyUrl = cluster['proxy-url']
  return {
    server,
    tls: {
      ...(ca && !insecure ? { ca } : {}),
      ...(cert && key ? { cert, key } : {}),
      ...(servername ? { servername } : {}),
      ...(insecure ? { insecureSkipVerify: true } : {}),
    },
    ...(proxyUrl ? { proxyUrl } : {}),
    authenticate:
      user.exec || user['auth-provider']
        ? (await import('./plugin.ts')).pluginAuthenticator({ ...context, server })
        : staticAuthenticator(user, log),
  }
}

function staticAuthenticator(user: UserEntry, log: Logger): Access['authenticate'] {
  const impersonation: Record<string, string> = user.as ? { 'impersonate-user': user.as } : {}
  if (user.tokenFile) {
    const token = tokenFile(user.tokenFile, log)
    token.read()
    return async () => ({ headers: { ...impersonation, authorization: `Bearer ${token.read()}` } })
  }
  const headers = user.token ? { ...impersonation, authorization: `Bearer ${user.token.trim()}` } : impersonation
  return async () => ({ headers })
}

/** A token that its owner replaces on disk. Should the file be away for a moment, the last token goes on serving. */
function tokenFile(path: string, log: Logger): { read(): string } {
  let token: string | undefined
  let readAtMs = 0
  return {
    read() {
      if (token !== undefined && performance.now() - readAtMs < TOKEN_FILE_MAX_AGE_MS) return token
      readAtMs = performance.now()
      try {
        const text = readFile(path).toString().trim()
        if (text === '') throw new Error('the file is empty')
        token = text
      } catch (error) {
        if (token === undefined) throw permanent(`The token file ${path} cannot be read: ${messageOf(error)}`)
        log.warn({ path, err: error }, 'Kubernetes token file cannot be read, keeping the last token')
      }
      return token
    },
  }
}

function refuseUnsupported({ user, userName, cluster, clusterName }: KubeconfigContext): void {
  if (user.username || user.password)
    throw permanent(
      `User "${userName}" of the kubeconfig has a username and password: Kubernetes no longer accepts basic ` +
        'authentication. Use a token, a client certificate or an exec plugin',
    )
  if (user['as-groups']?.length || Object.keys(user['as-user-extra'] ?? {}).length > 0)
    throw permanent(
      `User "${userName}" of the kubeconfig impersonates groups or extra fields, which Windlass does not: ` +
        'bind the rights to the user itself',
    )
  const proxyUrl = cluster['proxy-url']
  if (proxyUrl && !/^https?:\/\//.test(proxyUrl))
    throw permanent(
      `proxy-url of cluster "${clusterName}" in the kubeconfig is ${proxyUrl}: only http:// and https:// proxies serve`,
    )
}

function material(path: string | undefined, data: string | undefined, field: string): Buffer | undefined {
  if (data) {
    const decoded = Buffer.from(data, 'base64')
    if (!decoded.includes('-----BEGIN'))
      throw permanent(`${field}-data in the kubeconfig is not PEM in base64: write the file's content through base64`)
    return decoded
  }
  return path ? materialAt(path, `${field} of the kubeconfig`) : undefined
}

function materialAt(path: string, what: string): Buffer {
  try {
    return readFile(path)
  } catch (error) {
    // A file may be missing for the moment in which it is replaced.
    throw transient(`${path}, ${what}, cannot be read: ${messageOf(error)}`)
  }
}

function checkServer(server: string): string {
  const url = URL.parse(server.includes('://') ? server : `https://${server}`)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw permanent(`"${server}" is no address of a Kubernetes API server: write https://host:port`)
  return url.href.replace(/\/+$/, '')
}
