/*
 * Prints what a forwarder process needs for a large cluster: 1,000 nodes with 30 images each, heartbeats, and 200 Services.
 * Run by hand: node test/forwarder/memory.ts [flags of node for the forwarder]
 */
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeNode } from '../../src/kubernetes/objects.ts'
import { Cluster } from './cluster.ts'
import { Receiver } from './receiver.ts'

const NODES = 1000
const IMAGES = 30
const BEATS = 10

await measure()

async function measure(): Promise<void> {
  const cluster = await Cluster.start()
  const key = `whsec_${randomBytes(24).toString('base64')}`
  const receiver = await Receiver.start(undefined, 'prod', [key])
  for (let index = 0; index < NODES; index++) cluster.putNode(`node-${index}`, fill)
  for (let index = 0; index < 200; index++)
    cluster.putService(`service-${index}`, (service) => ({
      ...service,
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
    }))
  // As in the image: types are stripped and code is compiled before the process starts.
  const cache = await mkdtemp(join(tmpdir(), 'windlass-memory-'))
  const env = { ...process.env, NODE_COMPILE_CACHE: cache }
  const program = new URL('memory-forwarder.ts', import.meta.url)
  await once(fork(program, [], { env, execArgv: process.argv.slice(2) }), 'exit')
  const child = fork(program, [cluster.url, receiver.url, key], { env, execArgv: process.argv.slice(2) })
  await once(child, 'message')
  const [atStart] = await ask(child)
  for (let beat = 0; beat < BEATS; beat++) {
    for (const [index, { metadata }] of cluster.nodes.entries()) {
      cluster.putNode(metadata.name, fill)
      if (index % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const [afterBeats] = await ask(child)
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const peakKiB = /VmHWM:\s+(\d+)/.exec(status)?.[1]
  const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
  console.log(`${NODES} nodes of ${(JSON.stringify(cluster.nodes[0]).length / 1024).toFixed(1)} KiB, 200 services`)
  console.log(`after the first snapshot: RSS ${mib(atStart.rss)}, heap ${mib(atStart.heapUsed)}`)
  console.log(`after ${afterBeats.filtered} heartbeats: RSS ${mib(afterBeats.rss)}, heap ${mib(afterBeats.heapUsed)}`)
  console.log(`peak RSS ${mib(Number(peakKiB) * 1024)}; events sent ${afterBeats.sent}`)
  child.disconnect()
  child.kill()
  await rm(cache, { recursive: true })
  cluster.close()
  receiver.close()
}

async function ask(child: ReturnType<typeof fork>) {
  const answer = once(child, 'message') as Promise<[{ rss: number; heapUsed: number; filtered: number; sent: number }]>
  child.send('stats')
  return answer
}

function fill(node: KubeNode): KubeNode {
  const now = new Date().toISOString()
  const images = Array.from({ length: IMAGES }, (_, index) => ({
    names: [
      `registry.example.com/team-${index}/service@sha256:${'0123456789abcdef'.repeat(4)}`,
      `registry.example.com/team-${index}/service:v1.${index}.0`,
    ],
    sizeBytes: 100_000_000 + index,
  }))
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
    lastHeartbeatTime: now,
    lastTransitionTime: '2026-01-02T03:04:05Z',
  }))
  return {
    metadata: {
      ...node.metadata,
      labels: {
        'kubernetes.io/hostname': node.metadata.name,
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': 'cx22',
        'topology.kubernetes.io/region': 'fsn1',
        'topology.kubernetes.io/zone': 'fsn1-dc14',
      },
      managedFields: [
        { manager: 'kubelet', operation: 'Update', time: now, fieldsV1: { 'f:status': { 'f:images': {} } } },
      ],
    },
    spec: { providerID: `hcloud://${node.metadata.name}`, podCIDRs: ['10.244.1.0/24'] },
    status: {
      addresses: [
        { type: 'InternalIP', address: '10.0.0.2' },
        { type: 'Hostname', address: node.metadata.name },
      ],
      conditions,
      ...{ images },
    },
  }
}
