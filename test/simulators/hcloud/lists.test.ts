import t from 'tap'
import { call, refusal } from './caller.ts'
import { parseSelector } from './label-selector.ts'
import { startHcloudSimulator } from './simulator.ts'

t.test('lists', async (t) => {
  const simulator = await startHcloudSimulator()
  t.teardown(() => simulator.close())
  simulator.control.seed({
    servers: Array.from({ length: 120 }, (_, i) => ({ id: i + 1, name: `s${i + 1}`, labels: { odd: String(i % 2) } })),
  })

  t.test('come in pages that say where the next is', async (t) => {
    const first = await call(simulator, 'GET', '/servers?page=1&per_page=50')
    t.equal(first.body.servers.length, 50)
    t.strictSame(first.body.meta.pagination, {
      page: 1,
      per_page: 50,
      previous_page: null,
      next_page: 2,
      last_page: 3,
      total_entries: 120,
    })
    const last = await call(simulator, 'GET', '/servers?page=3&per_page=50')
    t.equal(last.body.servers.length, 20)
    t.match(last.body.meta.pagination, { previous_page: 2, next_page: null })
    t.equal((await call(simulator, 'GET', '/servers')).body.servers.length, 25, '25 unless asked otherwise')
  })

  t.test('refuse pages larger than 50 and nonsense', async (t) => {
    for (const query of ['per_page=51', 'per_page=0', 'per_page=ten']) {
      t.equal(refusal(await call(simulator, 'GET', `/servers?${query}`)), 'invalid_input per_page')
    }
    t.equal(refusal(await call(simulator, 'GET', '/servers?page=0')), 'invalid_input page')
  })

  t.test('filter by exact name and by labels', async (t) => {
    t.strictSame(
      (await call(simulator, 'GET', '/servers?name=s7')).body.servers.map((s: { id: number }) => s.id),
      [7],
    )
    t.strictSame((await call(simulator, 'GET', '/servers?name=S7')).body.servers, [])
    const odd = await call(simulator, 'GET', '/servers?label_selector=odd%3D%3D1&per_page=50')
    t.equal(odd.body.meta.pagination.total_entries, 60)
    t.equal(refusal(await call(simulator, 'GET', '/servers?label_selector=a%20b')), 'invalid_input label_selector')
  })

  t.test('sort by what can be sorted by', async (t) => {
    const { body } = await call(simulator, 'GET', '/servers?sort=id:desc&per_page=1')
    t.equal(body.servers[0].id, 120)
    t.equal(refusal(await call(simulator, 'GET', '/servers?sort=colour')), 'invalid_input sort')
  })
})

t.test('label selectors', async (t) => {
  const cases: [selector: string, labels: Record<string, string>, matches: boolean][] = [
    ['a=b', { a: 'b' }, true],
    ['a==b', { a: 'c' }, false],
    ['a!=b', {}, true],
    ['a', { a: '' }, true],
    ['!a', { a: '' }, false],
    ['a in (b, c),d', { a: 'c', d: '1' }, true],
    ['a notin (b,c)', { a: 'b' }, false],
    ['hcloud-ccm/service-uid=1-2', { 'hcloud-ccm/service-uid': '1-2' }, true],
  ]
  for (const [selector, labels, matches] of cases) t.equal(parseSelector(selector)?.(labels), matches, selector)
  for (const malformed of ['', 'a=b=c', 'a in ()', 'a in (b', ',', 'a b']) t.equal(parseSelector(malformed), undefined)
})
