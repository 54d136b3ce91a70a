import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { caseFiles, loadCase } from './case.ts'
import { compare } from './compare/compare.ts'
import { flagsOf } from './controller.ts'

const files = caseFiles([join(import.meta.dirname, 'cases')])

t.test('every recorded case can be loaded, and its own recording fits where nothing deviates', async (t) => {
  const ids = new Set<string>()
  for (const file of files) {
    const definition = loadCase(file)
    ids.add(definition.id)
    if (definition.deviates || !definition.expect) continue
    t.strictSame(compare(definition, definition.expect), [], definition.id)
  }
  t.equal(ids.size, files.length)
})

t.test('a case under another name is refused', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'a.yaml'), 'id: b\ncloud: hcloud\nabout: x\nexpect: {}\n')
  t.throws(() => loadCase(join(dir, 'a.yaml')), /its id is b, not a/)
})

t.test('settings become flags, controllers get their full names', async (t) => {
  const base = { id: 'x', cloud: 'hcloud', about: '' }
  t.strictSame(flagsOf(base), ['--node-monitor-period=1s'])
  t.strictSame(
    flagsOf({
      ...base,
      settings: { node_monitor_period: '5s', allocate_node_cidrs: true, cluster_cidr: '10.0.0.0/8,fd00::/48' },
      controllers: ['node', 'lifecycle', 'service', 'route'],
    }),
    [
      '--node-monitor-period=5s',
      '--allocate-node-cidrs=true',
      '--cluster-cidr=10.0.0.0/8,fd00::/48',
      '--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller,node-route-controller',
    ],
  )
})
