import { dirname, isAbsolute, join } from 'node:path'
import { parse, stringify } from 'yaml'
import { readFile } from '../config/read-file.ts'
import { messageOf, permanent } from '../errors.ts'

/** The entries of one or several kubeconfig files, by name. Paths in them are absolute. */
export interface Kubeconfig {
  currentContext?: string
  clusters: Map<string, ClusterEntry>
  users: Map<string, UserEntry>
  contexts: Map<string, ContextEntry>
}

export interface ClusterEntry {
  server?: string
  'certificate-authority'?: string
  'certificate-authority-data'?: string
  'insecure-skip-tls-verify'?: boolean
  'tls-server-name'?: string
  'proxy-url'?: string
  [field: string]: unknown
}

export interface UserEntry {
  'client-certificate'?: string
  'client-certificate-data'?: string
  'client-key'?: string
  'client-key-data'?: string
  token?: string
  tokenFile?: string
  username?: string
  password?: string
  as?: string
  'as-groups'?: string[]
  'as-user-extra'?: Record<string, string[]>
  exec?: ExecEntry
  'auth-provider'?: { name: string; config?: Record<string, unknown> }
  [field: string]: unknown
}

export interface ExecEntry {
  apiVersion?: string
  command?: string
  args?: string[] | null
  env?: { name: string; value: string }[] | null
  provideClusterInfo?: boolean
  [field: string]: unknown
}

export interface ContextEntry {
  cluster?: string
  user?: string
}

/** One context, resolved. */
export interface KubeconfigContext {
  name: string
  clusterName: string
  cluster: ClusterEntry
  userName: string
  user: UserEntry
}

const CLUSTER_PATHS = ['certificate-authority']
const USER_PATHS = ['client-certificate', 'client-key', 'tokenFile']

/** Reads kubeconfig files and merges them as kubectl does: of two entries of one name the first wins. Throws `permanent`. */
export function readKubeconfigs(paths: readonly string[]): Kubeconfig {
  const merged: Kubeconfig = { clusters: new Map(), users: new Map(), contexts: new Map() }
  let found = 0
  for (const path of paths) {
    let text: string
    try {
      text = readFile(path).toString()
    } catch (error) {
      // kubectl, too, skips files of a list that are not there.
      if (paths.length > 1 && (error as NodeJS.ErrnoException).code === 'ENOENT') continue
      throw permanent(`The kubeconfig ${path} cannot be read: ${messageOf(error)}`)
    }
    found++
    mergeKubeconfig(merged, text, path)
  }
  if (found === 0) throw permanent(`None of the kubeconfig files exists: ${paths.join(', ')}`)
  return merged
}

const CHOOSE = 'choose one with the setting context (WINDLASS_CONTEXT, --context)'

/** Throws `permanent` when the context, or what it names, is not there. */
export function resolveContext(config: Kubeconfig, wanted: string | undefined): KubeconfigContext {
  const name = wanted ?? config.currentContext ?? onlyKey(config.contexts)
  if (config.contexts.size === 0)
    throw permanent(
      `The kubeconfig has no contexts${name ? `, so no "${name}"` : ''}: check which file the setting kubeconfig names (KUBECONFIG, --kubeconfig)`,
    )
  if (name === undefined || name === '')
    throw permanent(`The kubeconfig names no current context: ${CHOOSE}, one of ${names(config.contexts)}`)
  const context = config.contexts.get(name)
  if (!context) throw permanent(`The kubeconfig has no context "${name}": ${CHOOSE}, one of ${names(config.contexts)}`)
  const cluster = config.clusters.get(context.cluster ?? '')
  if (!cluster)
    throw permanent(`Context "${name}" of the kubeconfig names cluster "${context.cluster}", which is not there`)
  const user = config.users.get(context.user ?? '')
  if (context.user && !user)
    throw permanent(`Context "${name}" of the kubeconfig names user "${context.user}", which is not there`)
  return { name, clusterName: context.cluster ?? '', cluster, userName: context.user ?? '', user: user ?? {} }
}

/** The user as a kubeconfig of its own, for client-node. It is not to connect to anything, so the cluster is a mere name. */
export function writeUserKubeconfig({ name, clusterName, userName, user }: KubeconfigContext): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name: clusterName, cluster: { server: 'https://kubernetes' } }],
    users: [{ name: userName, user }],
    contexts: [{ name, context: { cluster: clusterName, user: userName } }],
  })
}

function mergeKubeconfig(merged: Kubeconfig, text: string, path: string): void {
  let file: unknown
  try {
    file = parse(text)
  } catch (error) {
    throw permanent(`The kubeconfig ${path} is not YAML: ${messageOf(error).split('\n')[0]}`)
  }
  if (typeof file !== 'object' || file === null || Array.isArray(file))
    throw permanent(`The kubeconfig ${path} holds no mapping with clusters, users and contexts`)
  const config = file as Record<string, unknown>
  const current = config['current-context']
  if (merged.currentContext === undefined && typeof current === 'string' && current !== '')
    merged.currentContext = current
  const directory = dirname(path)
  mergeEntries(merged.clusters, config.clusters, 'cluster', path, (entry: ClusterEntry) =>
    absolute(entry, CLUSTER_PATHS, directory),
  )
  mergeEntries(merged.users, config.users, 'user', path, (entry: UserEntry) => {
    const user = absolute(entry, USER_PATHS, directory)
    const { exec } = user
    // A command with a slash in it is a path of its own, as for a shell.
    if (exec?.command?.includes('/') && !isAbsolute(exec.command))
      user.exec = { ...exec, command: join(directory, exec.command) }
    return user
  })
  mergeEntries(merged.contexts, config.contexts, 'context', path, (entry: ContextEntry) => entry)
}

function mergeEntries<T extends object>(
  into: Map<string, T>,
  list: unknown,
  field: string,
  path: string,
  prepare: (entry: T) => T,
): void {
  if (list === undefined || list === null) return
  if (!Array.isArray(list)) throw permanent(`${field}s in the kubeconfig ${path} is not a list`)
  for (const item of list as Record<string, unknown>[]) {
    const name = item?.name
    const entry = item?.[field] ?? {}
    if (typeof name !== 'string' || typeof entry !== 'object')
      throw permanent(`An entry of ${field}s in the kubeconfig ${path} has no name, or no ${field}`)
    if (!into.has(name)) into.set(name, prepare(entry as T))
  }
}

function absolute<T extends Record<string, unknown>>(entry: T, fields: string[], directory: string): T {
  const resolved: Record<string, unknown> = { ...entry }
  for (const field of fields) {
    const value = resolved[field]
    if (typeof value === 'string' && value !== '' && !isAbsolute(value)) resolved[field] = join(directory, value)
  }
  return resolved as T
}

function onlyKey(map: Map<string, unknown>): string | undefined {
  return map.size === 1 ? [...map.keys()][0] : undefined
}

function names(map: Map<string, unknown>): string {
  return map.size === 0 ? 'none' : [...map.keys()].sort().join(', ')
}
