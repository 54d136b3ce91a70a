import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { secretFaults } from '../../src/cli/secret-faults.ts'
import { FileSecret } from '../../src/config/secret.ts'
import type { HcloudSettings } from '../../src/config/types.ts'

t.test('a secret whose file is gone is told, while its last value serves', async (t) => {
  const dir = t.testdir({ token: 'good' })
  const path = join(dir, 'token')
  let nowMs = 0
  const token = new FileSecret({ name: 'HCLOUD_TOKEN', path, now: () => nowMs })
  const cluster = { id: 'prod', clouds: { hcloud: { token } as unknown as HcloudSettings } }
  t.same(secretFaults(cluster), [])
  rmSync(path)
  nowMs += 2000
  t.match(secretFaults(cluster), [/^Cluster prod: the file of HCLOUD_TOKEN can't be read \(ENOENT\)/])
  t.equal(token.read(), 'good')
  writeFileSync(path, 'better')
  nowMs += 2000
  t.same(secretFaults(cluster), [])
  t.equal(token.read(), 'better')
})
