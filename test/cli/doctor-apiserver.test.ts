import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Call } from '../../src/call.ts'
import type { DoctorDocument, Finding } from '../../src/cli/doctor/types.ts'
import { createKubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import { NODES } from '../../src/kubernetes/resources.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import type { Role } from '../apiserver/roles.ts'
import { startApiServer } from '../apiserver/start.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const TOKEN = 'k'.repeat(64)

t.test('rights and writers, as the real API server tells them', async (t) => {
  const [server, hcloud] = await Promise.all([startApiServer(), startHcloudSimulator({ token: TOKEN })])
  const log = createLogger({ level: 'silent' })
  const connection = await connect({ kubeconfig: [server.adminKubeconfig(join(t.testdir(), 'admin'))] }, log)
  t.teardown(async () => {
    connection.close()
    await Promise.all([server.stop(), hcloud.close()])
  })
  async function doctor(role: Role): Promise<Finding[]> {
    const env = {
      KUBECONFIG: server.kubeconfigFor(role),
      HCLOUD_TOKEN: TOKEN,
      HCLOUD_ENDPOINT: hcloud.apiUrl,
      HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
    }
    const child = spawn(process.execPath, [MAIN, 'doctor', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
    return (JSON.parse(output) as DoctorDocument).clusters.flatMap(({ findings }) => findings)
  }
  const rights = (findings: Finding[]) => findings.filter(({ area }) => area === 'rights')

  t.match(rights(await doctor('all')), [
    { level: 'ok', what: /forwarder/ },
    { level: 'ok', what: /worker/ },
  ])
  t.match(rights(await doctor('worker')), [
    { level: 'warning', what: /role forwarder: watch nodes, watch services/ },
    { level: 'ok', what: /worker/ },
  ])
  const forwarder = await doctor('forwarder')
  t.match(rights(forwarder), [
    { level: 'ok', what: /forwarder/ },
    { level: 'warning', what: /role worker: patch nodes/ },
  ])
  t.same(
    forwarder.filter(({ level }) => level === 'problem'),
    [],
    'an account of one role only is a good one',
  )
  t.match(
    forwarder.filter(({ area }) => area === 'other controller'),
    [{ level: 'warning', what: /Lease kube-system\/cloud-controller-manager is not known: .*forbidden/ }],
  )

  const api = createKubernetesApi(connection)
  const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }
  await api.create(NODES, { metadata: { name: 'w1', labels: { role: 'edge' } } }, call)
  const body = { spec: { providerID: 'hcloud://1' } }
  const fieldManager = 'hcloud-cloud-controller-manager'
  await api.patch(NODES, { name: 'w1' }, { type: 'merge', body }, call, { fieldManager })
  const others = (await doctor('worker')).filter(({ area }) => area === 'other controller')
  t.match(others, [{ level: 'warning', what: /^hcloud-cloud-controller-manager wrote to Nodes or Services \d+ s ago/ }])
})
