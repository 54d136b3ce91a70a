import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { TakeoverGuard } from '../../../src/controllers/takeover/guard.ts'
import { createKubernetesApi } from '../../../src/kubernetes/api.ts'
import { connect } from '../../../src/kubernetes/connection.ts'
import { EventRecorder } from '../../../src/kubernetes/events.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import { startKubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'

const OLD = 'hcloud-cloud-controller-manager'
const PACE = { closeLookMs: 5, calmLookMs: 10, quietMs: 1000 }

async function guarded(t: Test) {
  const simulator = await startKubernetesSimulator()
  const log = createLogger({ level: 'silent' })
  const dir = t.testdir({ kubeconfig: simulator.kubeconfig })
  const connection = await connect({ kubeconfig: [`${dir}/kubeconfig`] }, log)
  const kubernetes = createKubernetesApi(connection)
  const recorder = new EventRecorder({ api: kubernetes, log })
  let found = 0
  const guard = new TakeoverGuard({
    kubernetes,
    recorder,
    log,
    pace: PACE,
    onFound: async () => {
      found++
    },
  })
  t.teardown(() => {
    guard.stop()
    recorder.close()
    connection.close()
    return simulator.close()
  })
  const reasons = async () => {
    await recorder.flush(5000)
    return simulator.list('events').map(({ reason }) => reason)
  }
  return { simulator, guard, reasons, found: () => found }
}

const written = (ageMs: number, manager = OLD) => ({
  managedFields: [{ manager, operation: 'Update', time: new Date(Date.now() - ageMs).toISOString() }],
})

t.test('nobody else: one look is enough', async (t) => {
  const { simulator, guard, reasons } = await guarded(t)
  t.match(guard.problem, /not known yet/)
  await guard.look()
  t.equal(guard.problem, undefined)
  t.equal(simulator.requests.length, 3, 'by three reads')
  t.same(await reasons(), [])
})

t.test('a lease that is being renewed stops all writes, until it is given back', async (t) => {
  const { simulator, guard, reasons, found } = await guarded(t)
  const lease = { metadata: { name: 'cloud-controller-manager', namespace: 'kube-system' } }
  const renew = (second: number) => ({ holderIdentity: 'node-1_abc', leaseDurationSeconds: 15, renewTime: at(second) })
  simulator.create('leases', { ...lease, spec: renew(1) })
  await guard.look()
  t.match(guard.problem, /node-1_abc still renews/)
  simulator.change('leases', 'cloud-controller-manager', (one) => Object.assign(one, { spec: renew(3) }), 'kube-system')
  await guard.look()
  t.match(guard.problem, /Another cloud controller manager runs: node-1_abc/)
  t.equal(found(), 1)
  t.equal(guard.rival, guard.problem)
  simulator.delete('leases', 'cloud-controller-manager', 'kube-system')
  await guard.look()
  t.equal(guard.problem, undefined)
  while ((await reasons()).length < 2) await delay(5)
  t.same((await reasons()).sort(), ['OtherControllerGone', 'OtherControllerRuns'])
})

t.test('what another controller wrote just before our start is waited out, what is older is not', async (t) => {
  for (const [ageMs, problem] of [
    [0, /hcloud-cloud-controller-manager wrote/],
    [PACE.quietMs, undefined],
  ] as const) {
    const { simulator, guard } = await guarded(t)
    simulator.create('nodes', { metadata: { name: 'w1', ...written(ageMs) } })
    await guard.look()
    if (problem) t.match(guard.problem, problem)
    else t.equal(guard.problem, undefined)
    while (guard.problem !== undefined) await guard.look()
  }
})

t.test('a write that is newer than all that were there is one of somebody who runs', async (t) => {
  const { guard, found } = await guarded(t)
  await guard.look()
  guard.see(written(0, 'kube-controller-manager'))
  guard.see(written(0, 'windlass'))
  t.equal(guard.problem, undefined)
  guard.see(written(0))
  t.match(guard.problem, /hcloud-cloud-controller-manager wrote/)
  t.equal(found(), 1)
  const ends = guard.watch()
  while (guard.problem !== undefined) await delay(5)
  t.pass('goes on by itself once it is quiet')
  guard.stop()
  await ends
})

t.test('an API server that does not answer keeps it as it was', async (t) => {
  const { guard, simulator } = await guarded(t)
  await simulator.close()
  await guard.look()
  t.match(guard.problem, /not known yet/)
  t.equal(guard.rival, undefined, "the control plane's address may be moved all the same")
})

const at = (second: number) => new Date(second * 1000).toISOString().replace('Z', '000Z')
