import t from 'tap'
import { resyncUnderNewSettings } from '../../src/cli/new-settings.ts'
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
  const start = async (settings: ClusterSettings) => {
    asked.length = 0
    await resyncUnderNewSettings(settings, { applied: stores.settings, enqueuer, log })
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
  await server.stop()
  t.same(await start(settingsWith({})), [], 'without Redis the start goes on')
  t.match(lines.at(-1), /whether the settings are new is not known/)
})
