import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import type { Queue } from 'bullmq'
import type { FastifyInstance } from 'fastify'
import { indexPage } from './index-page.ts'
import { requireLogin } from './login.ts'

/** Everything comes from this host, and nothing in the page runs or styles by itself but one style sheet, in a drawing of the board's. */
const POLICY = [
  "default-src 'self'",
  "style-src 'self' 'sha256-r2N1TB/gHbBtBZFKg7ejmq1acVSREzucTAEw6ga4hoU='",
  "img-src 'self' data:",
  "base-uri 'self'",
  "object-src 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * The queues in a browser, behind a login. It only reads: whatever a human wants done goes through the same door as every other trigger,
 * since a job that the dashboard retried would run beside a newer one.
 */
export async function dashboard(
  app: FastifyInstance,
  { prefix, user, password, queues }: { prefix: string; user: string; password: string; queues: readonly Queue[] },
): Promise<void> {
  await requireLogin(app, { user, password })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('content-security-policy', POLICY).header('cache-control', 'no-store')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return reply.code(405).header('allow', 'GET, HEAD').send({ message: 'The dashboard only reads' })
  })
  app.addHook('onSend', async (request, reply, payload) =>
    typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
      ? indexPage(payload, prefix, request.headers['x-forwarded-prefix'])
      : payload,
  )
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ message: 'The dashboard has no such page' }))

  const adapter = new FastifyAdapter().setBasePath(prefix)
  createBullBoard({
    queues: queues.map(boardQueue),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Windlass',
        environment: { label: 'read-only', color: '#5b6b7f' },
      },
    },
  })
  await app.register(adapter.registerPlugin())
}

/** In the dashboard's place while it has no password. */
export async function dashboardOff(app: FastifyInstance): Promise<void> {
  for (const path of ['/', '/*'])
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      schema: { hide: true },
      handler: (_request, reply) =>
        reply.code(404).send({ message: 'The queue dashboard is off: it is served once a password is set for it' }),
    })
}

/** Shows the object that a job is about beside what is done with it. */
function boardQueue(queue: Queue): BullMQAdapter {
  const board = new BullMQAdapter(queue, { readOnlyMode: true })
  board.setFormatter('name', (job: { name?: string; data?: { key?: string } }) =>
    [job.name, job.data?.key].filter(Boolean).join(' '),
  )
  return board
}
