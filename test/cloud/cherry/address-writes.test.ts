import { Redis } from 'ioredis'
import t from 'tap'
import { type AddressWrites, createAddressWrites } from '../../../src/cloud/cherry/address-writes.ts'
import type { Address, AddressId, ServerId } from '../../../src/cloud/cherry/model.ts'
import { startRedis } from '../../redis.ts'

const address = (id: string, more: Partial<Address> = {}): Address => ({
  id: id as AddressId,
  address: `5.199.171.${id.length}`,
  type: 'floating-ip',
  region: 'LT-Siauliai',
  tags: { a: 'b' },
  ...more,
})
const server = 383531 as ServerId
const [one, two] = [address('1'), address('22')]
const ids = async (writes: AddressWrites, list: Address[]) => (await writes.applyTo(list)).map(({ id }) => String(id))

t.test('what another worker wrote counts before a list that does not show it', async (t) => {
  const fixture = await startRedis()
  const redis = new Redis(fixture.url)
  t.teardown(async () => {
    redis.disconnect()
    await fixture.stop()
  })
  let account = 'x'
  const worker = () => createAddressWrites({ redis, prefix: 'w', account: () => account })
  const [here, there] = [worker(), worker()]
  await here.made(one)
  t.same(await there.applyTo([two]), [two, one])
  await here.tagged(two.id, { c: 'd' })
  await here.moved(two.id, server)
  t.match(await there.applyTo([two]), [{ tags: { c: 'd' }, target: server }, one])
  await here.gone(one.id)
  t.same(await ids(there, [two, one]), ['22'])
  t.equal(await there.doubtMs({ cluster: 'c', service: 's' }), 0)
  await here.asked({ cluster: 'c', service: 's' })
  t.ok((await there.doubtMs({ cluster: 'c', service: 's' })) > 0)
  t.equal(await there.doubtMs({ cluster: 'c', service: 'other' }), 0)
  account = 'y'
  t.same(await there.applyTo([one]), [one], 'of another account nothing is known')
  t.equal(await there.doubtMs({ cluster: 'c', service: 's' }), 0)
  account = 'x'
  await there.answered({ cluster: 'c', service: 's' })
  t.equal(await worker().doubtMs({ cluster: 'c', service: 's' }), 0)
})

t.test('what a list has shown is its own from then on', async (t) => {
  const writes = createAddressWrites({ prefix: 'w', account: () => 'x' })
  await writes.made(one)
  t.same(await ids(writes, []), ['1'])
  t.same(await ids(writes, [one]), ['1'])
  t.same(await ids(writes, []), [], 'somebody has deleted it')
  await writes.moved(two.id, server)
  t.match(await writes.applyTo([two]), [{ target: server }])
  t.match(await writes.applyTo([{ ...two, target: server }]), [{ target: server }])
  t.same(await writes.applyTo([two]), [two], 'somebody has taken it off')
  await writes.tagged(two.id, { c: 'd' })
  t.match(await writes.applyTo([two]), [{ tags: { c: 'd' } }])
  t.same(await ids(writes, [{ ...two, tags: { c: 'd' } }]), ['22'])
  t.same(await writes.applyTo([two]), [two])
})
