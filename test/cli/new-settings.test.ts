import t from 'tap'
import { resyncUnderNewSettings, watchCredentials } from '../../src/cli/new-settings.ts'
import { FixedSecret } from '../../src/config/secret.ts'
import type { CherrySettings, ClusterSettings, ControllerName } from '../../src/config/types.ts'
import type { Trigger } from '../../src/queue/types.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { storesFor } from '../state/stores.ts'

const settingsWith = (cherry: Partial<CherrySettings>, controllers: ControllerName[] = []) =>
  ({
    id: 'default',
    framework: { controllers: new Set(controllers) },
    clouds: { cherry: { apiKey: new FixedSecret('CHERRY_API_KEY', 'k'), projectId: 1, ...cherry } },
  }) as unknown as ClusterSettings

t.test('everything is looked at again under other settings, and under the same ones nothing is', async (t) => {
  const { stores, server } = await storesFor(t)
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  const asked: Trigger[] = []
  const enqueuer = {
    enqueue: async (_cluster: string, triggers: readonly Trigger[]) => {
      asked.push(...triggers)
      return []
    },
  }
  let resyncPeriodMs = 600_000
  const start = async (settings: ClusterSettings) => {
    asked.length = 0
    await resyncUnderNewSettings(settings, { applied: stores.settings, enqueuer, resyncPeriodMs, log })
    return asked.map(({ key }) => key)
  }
  t.same(await start(settingsWith({})), [], 'an empty Redis looks at everything anyhow')
  t.same(await start(settingsWith({})), [])
  t.same(await start(settingsWith({ region: 'LT-Siauliai' })), ['Cluster/resync'])
  t.same(await start(settingsWith({ region: 'LT-Siauliai' })), [])
  t.same(await start(settingsWith({ region: 'LT-Siauliai' }, ['service-lb-controller'])), ['Cluster/resync'])
  const apiKey = new FixedSecret('CHERRY_API_KEY', 'another')
  const rekeyed = settingsWith({ region: 'LT-Siauliai', apiKey }, ['service-lb-controller'])
  t.same(await start(rekeyed), ['Cluster/resync'], 'what the old key made fail waits for no event')
  const moved = { ...rekeyed, kubernetes: { context: 'b' } }
  t.same(await start(moved), [], 'another way to the cluster')
  t.same(await start({ ...moved, ignoreOtherController: true }), ['Cluster/resync'])
  const others = { ...moved, ignoreOtherController: true }
  resyncPeriodMs = 60_000
  t.same(await start(others), ['Cluster/resync'], 'a shorter period does not wait for the end of the longer one')
  t.same(await start(others), [])
  await server.stop()
  t.same(await start(settingsWith({})), [], 'without Redis the start goes on')
  t.match(lines.at(-1), /whether the settings are new is not known/)
})

t.test(
  'a credential that changes while the worker runs makes it look at everything, until that is asked for',
  async (t) => {
    const { stores } = await storesFor(t)
    const log = createLogger({ level: 'silent' })
    let key = 'old'
    let looks = 0
    const apiKey = {
      name: 'CHERRY_API_KEY',
      read: () => {
        looks++
        return key
      },
    }
    const asked: Trigger[] = []
    let refusals = 2
    const enqueuer = {
      enqueue: async (_cluster: string, triggers: readonly Trigger[]) => {
        if (refusals-- > 0) throw new Error('Redis does not answer')
        asked.push(...triggers)
        return []
      },
    }
    const settings = settingsWith({ apiKey })
    const parts = { applied: stores.settings, enqueuer, resyncPeriodMs: 600_000, log }
    const lookedAgain = async () => {
      const before = looks
      while (looks < before + 5) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const end = watchCredentials(settings, parts, 1)
    t.teardown(end)
    await lookedAgain()
    t.equal(refusals, 2, 'with the same one nothing is asked')
    key = 'new'
    while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await lookedAgain()
    t.ok(asked.every((one) => one.key === 'Cluster/resync'))
    const known = asked.length
    await resyncUnderNewSettings(settings, parts)
    t.equal(asked.length, known, 'the next start knows it')
    end()
    key = 'third'
    await new Promise((resolve) => setTimeout(resolve, 20))
    t.equal(asked.length, known, 'nobody looks any more')
  },
)
