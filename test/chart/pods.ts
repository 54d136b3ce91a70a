import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { parseArgs } from '../../src/cli/args.ts'
import type { Fault } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'
import type { Command } from '../../src/config/setting.ts'
import type { Settings } from '../../src/config/types.ts'
import type { Json } from '../apiserver/admin.ts'

/** Secrets by name, with their keys. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>

export const WEBHOOK_KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export const objectsOf = (text: string): Json[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Json)
    .filter((object) => object !== null)

export const deploymentsOf = (objects: readonly Json[]): Json[] => objects.filter(({ kind }) => kind === 'Deployment')

export const rolesOf = (deployment: Json): Json[] =>
  deployment.spec.template.spec.containers.filter(({ name }: Json) => name === 'windlass')

/** The environment that a kubelet gives the container: addresses of Services, then its own, in which the former may stand. */
export function environmentOf(container: Json, objects: readonly Json[], secrets: Secrets): Record<string, string> {
  const env: Record<string, string> = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
  for (const [i, { metadata, spec }] of objects.filter(({ kind }) => kind === 'Service').entries()) {
    const name = String(metadata.name).toUpperCase().replaceAll('-', '_')
    const [{ port }] = spec.ports
    env[`${name}_SERVICE_HOST`] = `10.96.1.${i + 1}`
    env[`${name}_SERVICE_PORT`] = String(port)
    env[`${name}_PORT`] = `tcp://10.96.1.${i + 1}:${port}`
  }
  for (const { secretRef } of container.envFrom ?? []) Object.assign(env, secrets[secretRef.name])
  const names = new Set<string>()
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (names.has(name)) throw new Error(`${name} stands twice`)
    names.add(name)
    const { name: secret, key, optional } = valueFrom?.secretKeyRef ?? {}
    const given = valueFrom
      ? secrets[secret]?.[key]
      : value.replace(/\$\((\w+)\)/g, (_: string, of: string) => env[of] ?? _)
    if (given === undefined && !optional) throw new Error(`Secret ${secret} has no key ${key}`)
    if (given !== undefined) env[name] = given
  }
  return env
}

/** Writes what a kubelet puts into the Pod's volume with credentials. */
function mountCredentials(container: Json, objects: readonly Json[], secrets: Secrets, dir: string): void {
  const pod = deploymentsOf(objects).find((one) => rolesOf(one).includes(container))?.spec.template.spec
  const volume = pod?.volumes?.find(({ name }: Json) => name === 'credentials')
  for (const { secret } of volume?.projected.sources ?? []) {
    const keys = secrets[secret.name] ?? {}
    const items: { key: string; path: string }[] = secret.items ?? Object.keys(keys).map((key) => ({ key, path: key }))
    for (const { key, path } of items) {
      if (keys[key] !== undefined) writeFileSync(join(dir, path), keys[key])
      else if (!secret.optional) throw new Error(`Secret ${secret.name} has no key ${key}`)
    }
  }
}

export interface Started {
  command: Command
  settings: Settings
  env: Record<string, string>
  notices: readonly string[]
}

/** What the container's process makes of its arguments and its environment, or an error with its faults. */
export async function startOf(container: Json, objects: readonly Json[], secrets: Secrets): Promise<Started> {
  const invocation = parseArgs(container.args)
  if (invocation.kind !== 'run') throw new Error(`${container.args} is no command`)
  const { command, flags, faults } = invocation
  const env = environmentOf(container, objects, secrets)
  const dir = mkdtempSync(join(tmpdir(), 'windlass-'))
  try {
    mountCredentials(container, objects, secrets, dir)
    if (env.WINDLASS_CREDENTIALS_DIR !== undefined) env.WINDLASS_CREDENTIALS_DIR = dir
    return await loadedOf(command, flags, faults, env)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

async function loadedOf(
  command: Command,
  flags: ReadonlyMap<string, string>,
  faults: readonly Fault[],
  env: Record<string, string>,
): Promise<Started> {
  const loaded = await loadSettings({ command, flags, env })
  if ('faults' in loaded || faults.length > 0) throw new Error(`${command}: ${JSON.stringify({ faults, loaded })}`)
  return { command, settings: loaded.settings, env, notices: loaded.notices.map(({ message }) => message) }
}

/** Where a role answers probes. */
export const listenOf = ({ command, settings }: Started) =>
  command === 'worker'
    ? settings.worker.listen
    : command === 'forwarder'
      ? settings.forwarder.listen
      : settings.server.listen
