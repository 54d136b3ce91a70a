import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply } from 'fastify'
import Type from 'typebox'
import { BatchSchema } from '../../events/schema.ts'
import { WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP } from '../../events/sign.ts'
import { BATCH_CONTENT_TYPE, EPOCH_HEADER, SERVER_TIME_HEADER } from '../../events/types.ts'
import { faultOfHeaders, type SignatureFault, verify } from '../../events/verify.ts'
import type { ServerDeps } from '../deps.ts'
import type { FoldedLog } from '../folded-log.ts'
import type { EpochKeeper } from '../ingest/epoch-keeper.ts'
import { parseBatch } from '../ingest/parse.ts'
import { receive } from '../ingest/receive.ts'
import { Failure } from './failure.ts'

const schema = {
  summary: 'Take changes of a cluster',
  description:
    'A batch of CloudEvents, signed as Standard Webhooks. Answers 202 only when Redis holds all jobs that it asks for.',
  consumes: [BATCH_CONTENT_TYPE],
  params: Type.Object({ cluster: Type.String() }),
  headers: Type.Object({
    [WEBHOOK_ID]: Type.String({ description: 'Names the batch: a known one is answered and does nothing.' }),
    [WEBHOOK_TIMESTAMP]: Type.String({ description: 'Unix time in seconds of this attempt.' }),
    [WEBHOOK_SIGNATURE]: Type.String({ description: '`v1,{base64}` of HMAC-SHA256 over id, time and body.' }),
  }),
  body: BatchSchema,
  response: {
    202: Type.Object(
      {
        accepted: Type.Integer({ description: 'How many events.' }),
        epoch: Type.String({ description: `Names the life of Redis, as the header ${EPOCH_HEADER} does.` }),
      },
      { description: 'Queued.' },
    ),
    400: Type.Object(
      {
        message: Type.String(),
        faults: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
      },
      { description: 'What is wrong, by JSON path.' },
    ),
    401: Failure(`No or no good signature, or a stale one; then ${SERVER_TIME_HEADER} has the server's time.`),
    404: Failure('No such cluster.'),
    413: Failure('Too big: send fewer events at once.'),
    415: Failure('Another content type.'),
    503: Failure('Redis can not take it now; Retry-After says when to try again.'),
  },
}

/** `POST /v1/clusters/{cluster}/events` */
export async function eventsRoute(
  instance: FastifyInstance,
  { deps, epochs, refusals }: { deps: ServerDeps; epochs: EpochKeeper; refusals: FoldedLog },
): Promise<void> {
  const app = instance.withTypeProvider<TypeBoxTypeProvider>()
  const now = deps.now ?? Date.now

  function refuse(reply: FastifyReply, cluster: string, { fault, message }: SignatureFault) {
    refusals.warn(`events ${cluster} ${fault}`, { cluster, fault }, 'a batch was refused')
    if (fault === 'stale') reply.header(SERVER_TIME_HEADER, String(Math.floor(now() / 1000)))
    return reply.code(401).send({ message })
  }

  // The signature is over the bytes: nothing may look into them before.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(BATCH_CONTENT_TYPE, { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body)

  app.addHook('onRequest', async (request, reply) => {
    const { cluster } = request.params as { cluster: string }
    if (!deps.clusters.has(cluster))
      return reply.code(404).send({ message: 'The server knows no cluster of this name: it must be in its settings' })
    // Before anything of the body is read: whoever has no key can't make the server hold much without trying.
    const fault = faultOfHeaders(request.headers, now())
    if (fault) return refuse(reply, cluster, fault)
  })
  app.addHook('onResponse', async (request, reply) => {
    const { cluster } = request.params as { cluster: string }
    if (!deps.clusters.has(cluster)) return
    deps.metrics.increment('windlass_event_batches_total', 1, { cluster, status: String(reply.statusCode) })
    deps.metrics.observe('windlass_event_batch_duration_seconds', reply.elapsedTime / 1000, { cluster })
  })

  app.post(
    '/v1/clusters/:cluster/events',
    // The schema is for people and clients; bytes are checked by `verify` and `parseBatch`.
    {
      config: { contentTypes: BATCH_CONTENT_TYPE },
      schema,
      validatorCompiler: () => () => true,
      attachValidation: true,
    },
    async (request, reply) => {
      const { cluster } = request.params
      const bytes: unknown = request.body
      const body = Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0)
      const signature = verify(deps.clusters.get(cluster)?.webhookKeys ?? [], request.headers, body, now())
      if (signature.fault) return refuse(reply, cluster, signature)
      const { events, faults } = parseBatch(body, cluster)
      if (faults) {
        const fields = { cluster, webhookId: signature.id, faults: faults.slice(0, 3) }
        refusals.warn(`events ${cluster} contract`, fields, 'a batch was refused')
        return reply.code(400).send({ message: 'The batch is not as the contract says', faults })
      }
      const { epoch } = await receive(deps, epochs, { cluster, webhookId: signature.id, events })
      return reply.code(202).header(EPOCH_HEADER, epoch).send({ accepted: events.length, epoch })
    },
  )
}
