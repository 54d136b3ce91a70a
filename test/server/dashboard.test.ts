import { existsSync } from 'node:fs'
import { appRoutes } from '@bull-board/api/dist/routes.js'
import type { HTTPMethods } from 'fastify'
import { chromium, type Page } from 'playwright-core'
import t from 'tap'
import { createFailureLimit } from '../../src/server/dashboard/failure-limit.ts'
import { indexPage } from '../../src/server/dashboard/index-page.ts'
import { startServer } from '../../src/server/listen.ts'
import { nodeOf } from '../state/stores.ts'
import { harness, nodeChanged } from './harness.ts'

const LOGIN = { user: 'admin', password: 'correct horse' }
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const authorization = basic(LOGIN.user, LOGIN.password)

/** A server with a dashboard over its own queues, and a job for Node/a in them. */
async function withDashboard(t: import('tap').Test) {
  const first = await harness(t)
  const queues = [...first.deps.clusters.keys()].map((cluster) => first.queues.of(cluster).queue)
  const h = { ...first, deps: { ...first.deps, dashboard: { ...LOGIN, queues } } }
  const listening = await startServer(h.deps, { host: '127.0.0.1', port: 0 })
  t.teardown(() => listening.close({ noticeMs: 0, limitMs: 0 }))
  await h.post([nodeChanged(nodeOf('a', 1))])
  const url = `http://127.0.0.1:${listening.port}`
  return { h, url, fetch: (path: string, init: RequestInit = {}) => fetch(url + path, init) }
}

const ROUTES = appRoutes.api.flatMap(({ method, route }: { method: string | string[]; route: string | string[] }) =>
  [route].flat().flatMap((path) => [method].flat().map((one) => [one.toUpperCase() as HTTPMethods, path] as const)),
)
const concrete = (route: string, jobId: string) =>
  `/queues${route
    .replace(':queueName', 'default')
    .replace(':jobId', jobId)
    .replace(':queueStatus', 'failed')
    .replace(':schedulerId', 'x')}`

t.test('without a password there is no dashboard, and it is said why', async (t) => {
  const h = await harness(t)
  for (const url of ['/queues', '/queues/', '/queues/api/queues', '/queues/static/js/main.js']) {
    const answer = await h.server.app.inject(url)
    t.equal(answer.statusCode, 404)
    t.match(answer.json().message, /password/)
  }
})

t.test('nobody sees or does anything without the login', async (t) => {
  const { h, fetch } = await withDashboard(t)
  const jobId = (await h.queues.of('default').queue.getJobs())[0]?.id ?? ''
  const paths = [
    ['GET', '/queues'],
    ['GET', '/queues/'],
    ['GET', '/queues/queue/default'],
    ['GET', '/queues/nothing'],
    ['GET', '/queues/static/favicon.ico'],
  ]
  for (const [method, path] of [...paths, ...ROUTES.map(([method, route]) => [method, concrete(route, jobId)])]) {
    const answer = await fetch(path ?? '', { method })
    t.equal(answer.status, 401, `${method} ${path}`)
    t.match(answer.headers.get('www-authenticate'), /^Basic realm=/)
    t.strictSame(Object.keys(method === 'HEAD' ? { message: '' } : ((await answer.json()) as object)), ['message'])
  }
})

t.test('whoever is logged in reads, and changes nothing', async (t) => {
  const { h, fetch } = await withDashboard(t)
  const jobId = (await h.queues.of('default').queue.getJobs(['wait', 'delayed', 'prioritized']))[0]?.id ?? ''
  const dump = async () => {
    const keys = (await h.redis.keys('*:queue:*')).sort()
    return await Promise.all(keys.map(async (key) => [key, (await h.redis.dumpBuffer(key))?.toString('hex')]))
  }
  const before = await dump()
  t.ok(before.length > 3)
  const writes = ROUTES.filter(([method]) => method !== 'GET')
  t.ok(writes.length > 15)
  for (const [method, route] of ROUTES) {
    const answer = await fetch(concrete(route, jobId), {
      method,
      headers: { authorization, ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
      ...(method === 'GET' ? {} : { body: '{}' }),
    })
    await answer.body?.cancel()
    if (method === 'GET') t.equal(answer.status, 200, `${method} ${route}`)
    else {
      t.equal(answer.status, 405, `${method} ${route}`)
      t.equal(answer.headers.get('allow'), 'GET, HEAD')
    }
  }
  t.same(await dump(), before)
})

t.test('guessing is stopped, and the right password too until it has stopped', async (t) => {
  const { fetch } = await withDashboard(t)
  const tryOne = async (password: string) => {
    const answer = await fetch('/queues/', { headers: { authorization: basic(LOGIN.user, password) } })
    await answer.body?.cancel()
    return answer
  }
  for (let i = 0; i < 20; i++) t.equal((await tryOne(LOGIN.password)).status, 200, 'logins that are right do not count')
  for (let i = 0; i < 10; i++) t.equal((await tryOne(`guess ${i}`)).status, 401)
  const refused = await tryOne(LOGIN.password)
  t.equal(refused.status, 429)
  t.match(refused.headers.get('retry-after'), /^\d+$/)
})

t.test('failures are counted by address, for their window, and do not fill the memory', async (t) => {
  const limit = createFailureLimit({ failures: 2, windowMs: 1000 })
  limit.note('a', 0)
  t.equal(limit.waitMs('a', 0), 0)
  limit.note('a', 500)
  t.equal(limit.waitMs('a', 600), 400)
  t.equal(limit.waitMs('b', 600), 0)
  t.equal(limit.waitMs('a', 1000), 0)
  limit.note('a', 1000)
  limit.note('a', 1000)
  for (let i = 0; i < 10_001; i++) limit.note(`other ${i}`, 1000)
  t.equal(limit.waitMs('a', 1001), 0, 'the oldest is forgotten')
})

t.test('the page asks no other host for anything and works under a path of a proxy', async (t) => {
  const html = '<base href="/queues/"><link href="https://fonts.example/x" rel="stylesheet"><link href="static/a.css">'
  const styled = `${html}<div style="color:red" id="x">a</div><style>@keyframes a{}</style>`
  const clean = '<link href="static/a.css"><div id="x">a</div>'
  t.equal(indexPage(styled, '/queues', undefined), `<base href="/queues/">${clean}`)
  t.equal(indexPage(styled, '/queues', '/windlass'), `<base href="/windlass/queues/">${clean}`)
  for (const odd of ['//evil.example', '"><script>', 'evil.example', '/a b', '/'])
    t.equal(indexPage(styled, '/queues', odd), `<base href="/queues/">${clean}`)
})

t.test('in a browser it shows queues and jobs, asks no other host, and breaks no policy', async (t) => {
  const executablePath = '/usr/bin/chromium'
  if (!existsSync(executablePath))
    throw new Error('chromium is not at /usr/bin/chromium: install it (Debian: apt-get install chromium)')
  const { h, url } = await withDashboard(t)
  const [job] = await h.queues.of('default').queue.getJobs(['wait'])
  const browser = await chromium.launch({
    executablePath,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  })
  t.teardown(() => browser.close())
  const context = await browser.newContext({ httpCredentials: { username: LOGIN.user, password: LOGIN.password } })
  const page = await context.newPage()
  const hosts = new Set<string>()
  const complaints: string[] = []
  page.on('request', (request) => hosts.add(new URL(request.url()).origin))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (e) =>
       console.error('policy', e.violatedDirective, e.blockedURI, e.sourceFile, e.lineNumber, e.sample))`,
  )

  await page.goto(`${url}/queues/`)
  await shows(page, 'default')
  await shows(page, 'other')
  await page.goto(`${url}/queues/queue/default?status=waiting`)
  await shows(page, 'node Node/a')
  await page.goto(`${url}/queues/queue/default/${job?.id}`)
  await shows(page, 'node Node/a')
  t.same([...hosts], [url])
  t.same(complaints, [])
})

async function shows(page: Page, text: string): Promise<void> {
  await page.getByText(text).first().waitFor({ state: 'visible', timeout: 15_000 })
}
