import t from 'tap'
import { createRefusals } from '../../src/cli/refusals.ts'

t.test('a credential counts as refused from the answer that says so to one that takes it', async (t) => {
  const refusals = createRefusals()
  const after = (api: string, status?: number) => {
    refusals.note({ api, ...(status === undefined ? {} : { status }) })
    return refusals.problems().length
  }
  t.equal(after('hcloud', 200), 0)
  t.equal(after('hcloud', 401), 1)
  for (const status of [undefined, 429, 500, 503]) t.equal(after('hcloud', status), 1, `${status} says nothing of it`)
  t.equal(after('cherry', 200), 1, 'nor does another cloud')
  t.equal(after('cherry', 401), 2)
  t.match(refusals.problems(), [/HCLOUD_TOKEN/, /CHERRY_API_KEY/])
  t.equal(after('hcloud', 404), 1)
  t.equal(after('cherry', 422), 0)
})
