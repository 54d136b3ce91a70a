import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, ApiRefusal, ignoreMissing, type Json } from '../../apiserver/admin.ts'
import type { Case } from '../case.ts'
import { metallbDefinitions, metallbKinds } from './cherry-metallb.ts'

/** In kube-system: the Service of the control plane's floating IP. */
export const externalService = 'cloud-provider-cherry-kubernetes-external'

/** Takes away what an earlier case left; MetalLB's definitions too, unless they stay in use. */
export async function cleanCherryCluster(admin: Admin, withMetallb: boolean): Promise<void> {
  for (const kind of metallbKinds) {
    const objects = await listOrNone(admin, kind)
    await Promise.all(objects.map(({ metadata: m }) => admin.delete(kind, m.namespace, m.name).catch(ignoreMissing)))
  }
  if (!withMetallb) await removeDefinitions(admin)
  for (const [namespace, name] of [
    ['kube-system', externalService],
    ['default', 'kubernetes'],
  ] as const) {
    await admin.delete('Endpoints', namespace, name).catch(ignoreMissing)
    for (const { metadata } of await slicesOf(admin, namespace, name)) {
      await admin.delete('EndpointSlice', namespace, metadata.name).catch(ignoreMissing)
    }
  }
}

/** MetalLB's definitions and namespaces, usable once this resolves. */
export async function installMetallb(admin: Admin, namespaces: string[] = []): Promise<void> {
  const kind = 'CustomResourceDefinition'
  for (const definition of metallbDefinitions) await admin.apply(kind, undefined, definition.metadata.name, definition)
  for (const name of ['metallb-system', ...namespaces]) {
    await admin.apply('Namespace', undefined, name, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  await untilServed(async () => {
    for (const kind of metallbKinds) await admin.list(kind)
    await admin.send('GET', '/apis/metallb.io/v1beta1/bgppeers')
  })
}

/** By KIND/NAMESPACE/NAME, what the case's result shows beside Nodes and Services. */
export async function watchedObjects(admin: Admin, { metallb, external }: Case): Promise<Record<string, Json>> {
  const [ofMetallb, ofControlPlane] = await Promise.all([
    metallb ? metallbObjects(admin) : {},
    external ? controlPlaneObjects(admin) : {},
  ])
  return { ...ofMetallb, ...ofControlPlane }
}

async function metallbObjects(admin: Admin): Promise<Record<string, Json>> {
  const lists = await Promise.all(
    metallbKinds.map(async (kind) => (await listOrNone(admin, kind)).map((object) => [nameOf(kind, object), object])),
  )
  return Object.fromEntries(lists.flat())
}

function nameOf(kind: string, { metadata }: Json): string {
  return `${kind}/${metadata.namespace}/${metadata.name}`
}

async function controlPlaneObjects(admin: Admin): Promise<Record<string, Json>> {
  const namespace = 'kube-system'
  const [service, endpoints, slices] = await Promise.all([
    admin.get('Service', namespace, externalService),
    admin.get('Endpoints', namespace, externalService),
    slicesOf(admin, namespace, externalService),
  ])
  const shown = endpoints ?? (slices.length > 0 ? asEndpoints(slices) : undefined)
  return {
    ...(service ? { [`ServiceSpec/${namespace}/${externalService}`]: service } : {}),
    ...(shown ? { [`Endpoints/${namespace}/${externalService}`]: shown } : {}),
  }
}

/** EndpointSlices say the same in the newer way. */
function asEndpoints(slices: Json[]): Json {
  const inOrder = (a: Json, b: Json) => a.ip.localeCompare(b.ip, 'en', { numeric: true })
  return {
    metadata: { resourceVersion: slices.map(({ metadata }) => metadata.resourceVersion).join('+') },
    subsets: slices.map(({ endpoints, ports }) => ({
      addresses: (endpoints ?? [])
        .flatMap(({ addresses, nodeName, hostname }: Json) =>
          addresses.map((ip: string) => ({ ip, nodeName, hostname })),
        )
        .sort(inOrder),
      ports,
    })),
  }
}

async function slicesOf(admin: Admin, namespace: string, service: string): Promise<Json[]> {
  const slices = await admin.list('EndpointSlice', namespace)
  return slices.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === service)
}

/** None as well if the kind is not known to the API server. */
async function listOrNone(admin: Admin, kind: string): Promise<Json[]> {
  try {
    return await admin.list(kind)
  } catch (error) {
    ignoreMissing(error)
    return []
  }
}

async function removeDefinitions(admin: Admin): Promise<void> {
  const kind = 'CustomResourceDefinition'
  const names = metallbDefinitions.map((definition) => definition.metadata.name)
  await Promise.all(names.map((name) => admin.delete(kind, undefined, name).catch(ignoreMissing)))
  const present = async () => {
    const found = await Promise.all(names.map((name) => admin.get(kind, undefined, name)))
    return found.some((definition) => definition !== undefined)
  }
  while (await present()) await delay(50)
}

/** The API server serves a new kind a moment after it knows it. */
async function untilServed(use: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + 20_000
  for (;;) {
    try {
      await use()
      return
    } catch (error) {
      if (!(error instanceof ApiRefusal) || performance.now() > deadline) throw error
      await delay(50)
    }
  }
}
