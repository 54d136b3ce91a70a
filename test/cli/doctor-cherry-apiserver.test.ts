import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { DoctorDocument } from '../../src/cli/doctor/types.ts'
import type { Role } from '../apiserver/roles.ts'
import { startApiServer } from '../apiserver/start.ts'
import { installMetallb } from '../e2e/clouds/cherry-cluster.ts'
import { startCherrySimulator } from '../simulators/cherry/simulator.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const KEY = 'cherry-key-0123'
const METALLB = { CHERRY_LOAD_BALANCER: 'metallb:///' }

t.test(
  "MetalLB and the rights for it and for the control plane's address, as the real API server tells them",
  async (t) => {
    const [server, cherry] = await Promise.all([startApiServer(), startCherrySimulator({ token: KEY })])
    t.teardown(() => Promise.all([server.stop(), cherry.close()]))
    const { admin } = server
    await cherry.control.seed({ projects: [{ id: 5, name: 'lab' }] })
    async function doctor(role: Role, env: Record<string, string>) {
      const child = spawn(process.execPath, [MAIN, 'doctor', '--json'], {
        env: {
          KUBECONFIG: server.kubeconfigFor(role),
          CHERRY_API_KEY: KEY,
          CHERRY_PROJECT_ID: '5',
          CHERRY_API_URL: cherry.apiUrl,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
      const { clusters } = JSON.parse(output) as DoctorDocument
      const findings = clusters.flatMap((one) => one.findings)
      const of = (area: string) => findings.filter((one) => one.area === area)
      return { rights: of('rights').map(({ level, what }) => `${level}: ${what}`), metallb: of('metallb') }
    }
    const WORKER = [/^warning: .* role forwarder/, 'ok: The account has all rights of the role worker']

    const neither = await doctor('worker', {})
    t.match(neither.rights, WORKER)
    t.same([neither.rights.length, neither.metallb], [2, []], 'what is not used is not asked for')
    t.match((await doctor('worker', { CHERRY_FIP_TAG: 'role=cp' })).rights, [
      ...WORKER,
      "ok: The account has all rights for the control plane's address",
    ])

    const without = await doctor('worker', METALLB)
    t.match(without.metallb, [
      { level: 'problem', what: /does not have BGPPeer \(metallb\.io\/v1beta2\), BGPAdvertisement/ },
    ])

    await installMetallb(admin, ['elsewhere'])
    const good = await doctor('worker', METALLB)
    t.match(good.rights, [...WORKER, "ok: The account has all rights for MetalLB's objects"])
    t.match(good.metallb, [
      { level: 'ok', what: 'MetalLB is installed, and namespace metallb-system takes its objects' },
    ])
    t.same(await admin.list('IPAddressPool'), [], 'the pool that was tried is not stored')
    t.match((await doctor('worker', { CHERRY_LOAD_BALANCER: 'metallb:///nowhere' })).metallb, [
      { level: 'problem', what: /^There is no namespace nowhere/, toDo: /metallb:\/\/\/<MetalLB's namespace>/ },
    ])

    // Rights in MetalLB's namespace alone are enough, if none is missing.
    await admin.delete('ClusterRoleBinding', undefined, 'windlass-cherry')
    await admin.create('Role', 'metallb-system', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'narrow' },
      rules: [
        {
          apiGroups: ['metallb.io'],
          resources: ['ipaddresspools', 'bgppeers'],
          verbs: ['list', 'create', 'patch', 'delete'],
        },
        { apiGroups: ['metallb.io'], resources: ['bgpadvertisements'], verbs: ['list', 'create', 'patch'] },
      ],
    })
    await admin.create('RoleBinding', 'metallb-system', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'narrow' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'narrow' },
      subjects: [{ kind: 'ServiceAccount', name: 'windlass-worker', namespace: 'windlass' }],
    })
    const narrow = await doctor('worker', METALLB)
    t.same(
      narrow.rights.at(-1),
      "problem: The account lacks rights for MetalLB's objects: delete bgpadvertisements.metallb.io in metallb-system",
    )
    t.match(narrow.metallb, [{ level: 'ok' }])
    const other = await doctor('worker', { CHERRY_LOAD_BALANCER: 'metallb:///elsewhere' })
    t.match(other.rights.at(-1), /^problem: .* list ipaddresspools\.metallb\.io in elsewhere, .* and 4 more$/)
    t.match(other.metallb, [
      { level: 'warning', what: /not known/, toDo: 'Grant the rights of k8s/base/cherry-rbac.yaml' },
    ])
    // Who is no worker needs none of them.
    t.match(
      (await doctor('forwarder', METALLB)).rights.at(-1),
      /^warning: The account lacks rights for MetalLB's objects/,
    )
  },
)
