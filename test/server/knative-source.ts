import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { KnativeSettings } from '../../src/config/types.ts'
import { knativePath } from '../../src/events/knative.ts'
import { KNATIVE_TYPE } from '../../src/events/knative-schema.ts'
import type { ServerDeps } from '../../src/server/deps.ts'
import { type Harness, harness } from './harness.ts'

const PLACING = { classes: { 'example.com/ours': 'hcloud' } }

/** A server on a port of its own with clusters `default` (pod routes on), `other` (off), and `off`, which takes nothing of Knative. */
export async function knativeServer(
  t: Test,
  knative: { default: KnativeSettings; other: KnativeSettings },
  more: Partial<ServerDeps> = {},
): Promise<{ h: Harness; url: string }> {
  const common = { webhookKeys: [], placing: PLACING }
  const clusters = new Map([
    ['default', { ...common, routes: true, knative: knative.default }],
    ['other', { ...common, routes: false, knative: knative.other }],
    ['off', { ...common, routes: false }],
  ])
  const h = await harness(t, { clusters, ...more })
  await h.server.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = h.server.app.server.address() as AddressInfo
  return { h, url: `http://127.0.0.1:${port}` }
}

export interface Sent {
  cluster?: string
  token?: string
  mode?: 'binary' | 'structured'
  /** Attributes in place of those that a source would give. */
  attributes?: Record<string, string>
  headers?: Record<string, string>
}

/** Posts an object as an ApiServerSource does. */
export async function post(
  url: string,
  type: keyof typeof KNATIVE_TYPE,
  data: unknown,
  { cluster = 'default', token, mode = 'binary', attributes = {}, headers = {} }: Sent = {},
): Promise<Response> {
  const event: Record<string, string> = {
    specversion: '1.0',
    id: randomUUID(),
    source: 'https://10.96.0.1:443',
    type: KNATIVE_TYPE[type],
    time: new Date().toISOString(),
    ...attributes,
  }
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const [own, body]: [Record<string, string>, string] =
    mode === 'structured'
      ? [{ 'content-type': 'application/cloudevents+json' }, JSON.stringify({ ...event, data })]
      : [
          {
            'content-type': 'application/json',
            ...Object.fromEntries(Object.entries(event).map(([name, value]) => [`ce-${name}`, value])),
          },
          JSON.stringify(data),
        ]
  return await fetch(`${url}${knativePath(cluster)}`, {
    method: 'POST',
    headers: { ...own, ...authorization, ...headers },
    body,
  })
}

const metadata = (name: string, version: number) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version),
  creationTimestamp: '2026-01-01T00:00:00Z',
})

export const kubeNode = (name: string, version: number, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { ...metadata(name, version), labels },
  spec: { providerID: 'hcloud://1', podCIDRs: ['10.1.0.0/24'] },
  status: {
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() }],
    images: [{ names: ['x'] }],
  },
})

export const kubeService = (name: string, version: number, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { ...metadata(name, version), namespace: 'default' },
  spec: { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30080, targetPort: 8080 }], ...spec },
  status: { loadBalancer: {} },
})

export const nodeReference = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name })
export const serviceReference = (name: string) => ({ apiVersion: 'v1', kind: 'Service', namespace: 'default', name })
