import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import type { Admin, Json } from './admin.ts'

/** Who may talk to the API server, with exactly the rights that `k8s/base` grants. */
export type Role = 'forwarder' | 'worker' | 'all'

export const roles: readonly Role[] = ['forwarder', 'worker', 'all']

/** Applies the namespace and the rights of `k8s/base`. */
export async function grantRights(admin: Admin): Promise<void> {
  const manifests = rightsManifests()
  // A namespace has to stand before what is in it.
  for (const namespace of manifests.filter((x) => x.kind === 'Namespace')) await apply(admin, namespace)
  await Promise.all(manifests.filter((x) => x.kind !== 'Namespace').map((manifest) => apply(admin, manifest)))
}

/** A token for the role's ServiceAccount, as the kubelet would request it for a Pod. */
export async function tokenFor(admin: Admin, role: Role): Promise<string> {
  const account = rightsManifests().find((x) => x.kind === 'ServiceAccount' && x.metadata.name === `windlass-${role}`)
  const { name, namespace } = account.metadata
  const request = await admin.send('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 86_400 },
  })
  return request.status.token
}

const base = join(import.meta.dirname, '../../k8s/base')

export function rightsManifests(): Json[] {
  const { resources } = parse(readFileSync(join(base, 'kustomization.yaml'), 'utf8'))
  const listed = new Set<string>(resources)
  const files = readdirSync(base).filter((file) => listed.has(file) && /^namespace\.yaml$|-rbac\.yaml$/.test(file))
  return files.flatMap((file) =>
    parseAllDocuments(readFileSync(join(base, file), 'utf8')).map((document) => document.toJS()),
  )
}

async function apply(admin: Admin, manifest: Json): Promise<void> {
  await admin.apply(manifest.kind, manifest.metadata.namespace, manifest.metadata.name, manifest)
}
