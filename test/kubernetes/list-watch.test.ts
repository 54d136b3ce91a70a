import t, { type Test } from 'tap'
import { type ListWatch, type ListWatchOptions, listWatch, type WatchEvent } from '../../src/kubernetes/list-watch.ts'
import type { KubeNode } from '../../src/kubernetes/objects.ts'
import { NODES } from '../../src/kubernetes/resources.ts'
import { setUp, silent, until } from './setting.ts'

/** A list and watch of nodes that keeps their names, and what it reported. */
async function start(t: Test, options: Partial<ListWatchOptions<KubeNode, string>> = {}) {
  const { simulator, connection } = await setUp(t)
  const lists: string[][] = []
  const events: string[] = []
  const bookmarks: string[] = []
  const controller = new AbortController()
  const begin = (): ListWatch =>
    listWatch<KubeNode, string>({
      connection,
      resource: NODES,
      project: ({ metadata }) => metadata.name,
      onList: (items) => void lists.push(items),
      onEvent: ({ type, object }: WatchEvent<string>) => void events.push(`${type} ${object}`),
      onBookmark: (version) => void bookmarks.push(version),
      signal: controller.signal,
      log: silent,
      backoffMs: 5,
      ...options,
    })
  t.teardown(() => controller.abort())
  const add = (name: string) => simulator.create('nodes', { metadata: { name } })
  const watching = () => until(() => simulator.watches.count === 1)
  return { simulator, lists, events, bookmarks, controller, begin, add, watching }
}

t.test('all objects are reported, then each change', async (t) => {
  const { begin, simulator, lists, events, add, watching, controller } = await start(t, { pageSize: 2 })
  for (const name of ['a', 'b', 'c']) add(name)
  const running = begin()
  await watching()
  add('d')
  simulator.change('nodes', 'a', ({ metadata }) => {
    metadata.labels = { x: '1' }
  })
  simulator.delete('nodes', 'b')
  await until(() => events.length === 3)
  t.same(lists, [['a', 'b', 'c']])
  t.same(events, ['ADDED d', 'MODIFIED a', 'DELETED b'])
  t.match(running, { lists: 1, restarts: 0, callbackErrors: 0 })
  t.ok(Math.abs(running.lastSignOfLifeMs - Date.now()) < 60_000)
  controller.abort()
  await running.done
  t.equal(simulator.watches.count, 0)
})

t.test('the watch asks for bookmarks, a time limit of 5 to 10 minutes, and the version of the list', async (t) => {
  const { begin, simulator, watching } = await start(t, { fieldSelector: 'metadata.name=a', labelSelector: 'x' })
  const version = simulator.store.version
  begin()
  await watching()
  const { searchParams } = new URL(simulator.requests.at(-1)?.url ?? '', simulator.url)
  const seconds = Number(searchParams.get('timeoutSeconds'))
  t.ok(seconds >= 300 && seconds <= 600)
  t.match(Object.fromEntries(searchParams), {
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: String(version),
    fieldSelector: 'metadata.name=a',
    labelSelector: 'x',
  })
})

t.test('a watch that breaks, or is ended, goes on from where it was', async (t) => {
  for (const end of ['drop', 'finish'] as const) {
    const { begin, simulator, lists, events, add, watching } = await start(t)
    const running = begin()
    await watching()
    add('a')
    await until(() => events.length === 1)
    simulator.watches[end]()
    add('b')
    await until(() => events.length === 2)
    t.same(events, ['ADDED a', 'ADDED b'], end)
    t.equal(lists.length, 1)
    t.ok(running.restarts >= 1)
  }
})

t.test('a bookmark moves the place from which a watch goes on', async (t) => {
  const { begin, simulator, bookmarks, lists, watching } = await start(t)
  simulator.watches.bookmarkIntervalMs = 10
  begin()
  await watching()
  simulator.create('services', { metadata: { name: 's' }, spec: { ports: [{ port: 1 }] } })
  const version = String(simulator.store.version)
  await until(() => bookmarks.at(-1) === version)
  simulator.watches.drop()
  await until(() => simulator.requests.length === 3)
  t.match(simulator.requests.at(-1)?.url, `resourceVersion=${version}`)
  t.equal(lists.length, 1)
})

t.test('a watch that went silent is opened again from its last version', async (t) => {
  const { begin, simulator, lists, events, add, watching } = await start(t, { silenceMs: 200 })
  const running = begin()
  await watching()
  simulator.watches.freeze()
  add('a')
  await until(() => events.length === 1)
  t.same(events, ['ADDED a'])
  t.equal(lists.length, 1)
  t.equal(running.restarts, 1)
})

t.test('a version that the server forgot leads to a new list', async (t) => {
  t.test('told by an ERROR event', async (t) => {
    const { begin, simulator, lists, add, watching } = await start(t)
    begin()
    await watching()
    simulator.faults.add({ match: { verb: 'watch' }, effect: { kind: 'status', status: 500 }, times: 1 })
    simulator.watches.drop()
    add('a')
    simulator.store.compact()
    await until(() => lists.length === 2)
    t.same(lists.at(-1), ['a'])
    await watching()
  })
  t.test('told by status 410', async (t) => {
    const { begin, simulator, lists, watching } = await start(t)
    simulator.faults.add({ match: { verb: 'watch' }, effect: { kind: 'gone' }, times: 1 })
    begin()
    await until(() => lists.length === 2)
    await watching()
  })
  t.test('in the middle of the watch, whatever the error is', async (t) => {
    const { begin, simulator, lists, watching } = await start(t)
    begin()
    await watching()
    simulator.watches.fail({ code: 500, reason: 'InternalError', message: 'etcd is away' })
    await until(() => lists.length === 2)
  })
})

t.test('what fails is tried again, for ever', async (t) => {
  t.test('the list, refused in all ways', async (t) => {
    const { begin, simulator, lists } = await start(t)
    for (const effect of [
      { kind: 'status', status: 403 },
      { kind: 'drop' },
      { kind: 'body', status: 200, contentType: 'text/html', body: '<html>' },
    ] as const)
      simulator.faults.add({ match: { verb: 'list' }, effect, times: 1 })
    const running = begin()
    await until(() => lists.length === 1)
    t.ok(running.restarts >= 2)
  })
  t.test('the watch, which keeps its version meanwhile', async (t) => {
    const { begin, simulator, lists, events, add, watching } = await start(t)
    simulator.faults.add({
      match: { verb: 'watch' },
      effect: { kind: 'status', status: 429, retryAfterSeconds: 0 },
      times: 2,
    })
    begin()
    await until(() => lists.length === 1)
    add('a')
    await watching()
    await until(() => events.length === 1)
    t.equal(lists.length, 1)
  })
  t.test('a line that is not JSON', async (t) => {
    const { begin, simulator, lists, events, add, watching } = await start(t)
    const running = begin()
    await watching()
    simulator.watches.write('<html>\n')
    // The next watch may be open before anybody has seen that the last one was closed.
    await until(() => running.restarts > 0)
    add('a')
    await until(() => events.length === 1)
    t.equal(lists.length, 1)
  })
})

t.test('an error of a callback is counted and changes nothing', async (t) => {
  const seen: string[] = []
  const { begin, add, watching } = await start(t, {
    onList: () => Promise.reject(new Error('list')),
    onEvent: ({ object }) => {
      seen.push(object)
      throw new Error('event')
    },
  })
  const running = begin()
  await watching()
  add('a')
  add('b')
  await until(() => seen.length === 2)
  t.match(running, { callbackErrors: 3, restarts: 0 })
})

t.test('the signal ends it at any point', async (t) => {
  t.test('while it waits to try again', async (t) => {
    const { begin, simulator, controller } = await start(t)
    simulator.faults.add({ effect: { kind: 'status', status: 500, retryAfterSeconds: 60 } })
    const running = begin()
    await until(() => running.restarts === 1)
    controller.abort()
    await running.done
  })
  t.test('while the list is under way', async (t) => {
    const { begin, simulator, controller } = await start(t)
    simulator.faults.add({ effect: { kind: 'hang' } })
    const running = begin()
    await until(() => simulator.requests.length === 1)
    controller.abort()
    await running.done
    t.equal(running.lists, 0)
  })
  t.test('before it began', async (t) => {
    const { begin, simulator, controller } = await start(t)
    controller.abort()
    await begin().done
    t.equal(simulator.requests.length, 0)
  })
})
