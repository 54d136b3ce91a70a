import t from 'tap'
import { formatFaults } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'

const env = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:6379', KUBERNETES_SERVICE_HOST: '10.0.0.1', HCLOUD_TOKEN: 'h' }
const load = (flags: Record<string, string>) =>
  loadSettings({ command: 'all', flags: new Map(Object.entries(flags)), env })

t.test('a period for routes counts, unless the gate says that they are watched', async (t) => {
  const period = { 'route-reconciliation-period': '30s' }
  const gate = 'CloudControllerManagerWatchBasedRoutesReconciliation'
  const cases: [Record<string, string>, number | undefined][] = [
    [{}, undefined],
    [period, 30_000],
    [{ ...period, 'feature-gates': `${gate}=true` }, undefined],
    [{ ...period, 'feature-gates': `Other=true, ${gate}=false` }, 30_000],
    [{ ...period, 'feature-gates': 'Other=true' }, 30_000],
    [{ ...period, 'feature-gates': '' }, 30_000],
  ]
  for (const [flags, expected] of cases) {
    const loaded = await load(flags)
    const found = 'settings' in loaded ? loaded.settings.clusters[0]?.framework.routeReconciliationPeriodMs : 'faults'
    t.equal(found, expected, JSON.stringify(flags))
  }
})

t.test('what is no period and no list of gates is refused', async (t) => {
  const refused: Record<string, string>[] = [
    { 'route-reconciliation-period': '0s' },
    { 'route-reconciliation-period': '30' },
    { 'feature-gates': 'Other' },
    { 'feature-gates': 'Other=on' },
  ]
  for (const flags of refused) {
    const loaded = await load(flags)
    const text = 'faults' in loaded ? formatFaults('', loaded.faults) : ''
    t.match(text, Object.keys(flags)[0] ?? '', JSON.stringify(flags))
  }
})
