import { type Admin, ignoreMissing, type Json, namespaceOf } from '../apiserver/admin.ts'
import { apiVersionOf } from '../apiserver/kinds.ts'

/** Takes away what a case left: Nodes, Services, Secrets, Events, foreign leases. */
export async function cleanCluster(admin: Admin): Promise<void> {
  for (;;) {
    const services = (await admin.list('Service')).filter((service) => !isApiServer(service))
    const nodes = await admin.list('Node')
    if (services.length === 0 && nodes.length === 0) break
    await Promise.all([
      ...services.map((x) => remove(admin, 'Service', x)),
      ...nodes.map((x) => remove(admin, 'Node', x)),
    ])
  }
  const namespaces = (await admin.list('Namespace')).map((namespace) => namespace.metadata.name)
  await Promise.all(namespaces.map((namespace) => admin.deleteAll('Event', namespace).catch(ignoreMissing)))
  await Promise.all(['default', 'kube-system'].map((ns) => admin.deleteAll('Secret', ns).catch(ignoreMissing)))
  for (const { metadata } of await admin.list('Lease', 'kube-system')) {
    if (!metadata.name.startsWith('apiserver-')) {
      await admin.delete('Lease', 'kube-system', metadata.name).catch(ignoreMissing)
    }
  }
}

/** Service default/kubernetes, which kube-apiserver keeps itself. */
export function isApiServer({ metadata }: Json): boolean {
  return metadata.namespace === 'default' && metadata.name === 'kubernetes'
}

export async function createObject(admin: Admin, manifest: Json): Promise<void> {
  if (manifest.kind === 'Node') {
    await admin.createNode(manifest)
    return
  }
  // Applied from the beginning, so that a later apply can take away what this one set.
  await applyManifest(admin, manifest)
}

export async function applyObject(admin: Admin, manifest: Json): Promise<void> {
  const { kind, metadata } = manifest
  const exists = await admin.get(kind, namespaceOf(kind, metadata.namespace), metadata.name)
  if (exists) await applyManifest(admin, manifest)
  else await createObject(admin, manifest)
}

/**
 * kube-apiserver would keep Endpoints and EndpointSlice of default/kubernetes alike; here a case writes the first and
 * this the second.
 */
export async function mirrorEndpoints(admin: Admin, kind: string, namespace: string | undefined, name: string) {
  if (kind !== 'Endpoints' || namespace !== 'default' || name !== 'kubernetes') return
  const [subset] = (await admin.get(kind, namespace, name))?.subsets ?? []
  await admin.apply('EndpointSlice', namespace, name, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: (subset?.addresses ?? []).map(({ ip }: Json) => ({ addresses: [ip], conditions: { ready: true } })),
    ports: subset?.ports ?? [],
  })
}

async function applyManifest(admin: Admin, manifest: Json): Promise<void> {
  const { status, 'x-initialized': _, ...object } = manifest
  const { kind, metadata } = object
  const namespace = namespaceOf(kind, metadata.namespace)
  await admin.apply(kind, namespace, metadata.name, { apiVersion: apiVersionOf(kind), ...object })
  if (status) await admin.patch(kind, namespace, metadata.name, { status }, 'merge', 'status')
  await mirrorEndpoints(admin, kind, namespace, metadata.name)
}

async function remove(admin: Admin, kind: string, { metadata }: Json): Promise<void> {
  const { namespace, name } = metadata
  await admin.delete(kind, namespace, name).catch(ignoreMissing)
  await admin.patch(kind, namespace, name, { metadata: { finalizers: null } }).catch(ignoreMissing)
}
