import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { BINARY_CONTENT_TYPE, readCloudEvent, STRUCTURED_CONTENT_TYPE } from '../../events/http-binding.ts'
import { readKnativeEvent } from '../../events/knative.ts'
import { KnativeEventSchema } from '../../events/knative-schema.ts'
import { EPOCH_HEADER } from '../../events/types.ts'
import { newTraceparent, traceIdOf } from '../../telemetry/traceparent.ts'
import type { ServerDeps } from '../deps.ts'
import type { FoldedLog } from '../folded-log.ts'
import type { EpochKeeper } from '../ingest/epoch-keeper.ts'
import { batchOf } from '../ingest/knative.ts'
import { receive } from '../ingest/receive.ts'
import { createGate, type Gate } from '../knative/gate.ts'
import { Failure } from './failure.ts'

const CONTENT_TYPES = [BINARY_CONTENT_TYPE, STRUCTURED_CONTENT_TYPE]

const schema = {
  summary: "Take one change of a cluster from Knative's ApiServerSource",
  description:
    'A CloudEvent in binary or structured mode, of event mode Resource or Reference. Answers 202 only when Redis holds all jobs that it asks for.',
  consumes: CONTENT_TYPES,
  security: [{ bearer: [] }],
  params: Type.Object({ cluster: Type.String() }),
  body: KnativeEventSchema,
  response: {
    202: Type.Unsafe<undefined>({
      type: 'null',
      description: `Queued; the header ${EPOCH_HEADER} names the life of Redis.`,
    }),
    400: Type.Object(
      { message: Type.String(), faults: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })) },
      { description: 'What is wrong, by JSON path: also of an object that is neither a Node nor a Service.' },
    ),
    401: Failure('No or no good bearer token.'),
    404: Failure('No such cluster, or none that takes events of Knative.'),
    413: Failure('Too big.'),
    415: Failure('Another content type.'),
    503: Failure(
      'Redis can not take it now, or the keys of the issuer can not be had; Retry-After says when to try again.',
    ),
  },
}

/** `POST /v1/clusters/{cluster}/knative` */
export async function knativeRoute(
  instance: FastifyInstance,
  { deps, epochs, refusals }: { deps: ServerDeps; epochs: EpochKeeper; refusals: FoldedLog },
): Promise<void> {
  const app = instance.withTypeProvider<TypeBoxTypeProvider>()
  const now = deps.now ?? Date.now
  const gates = new Map<string, Gate>()
  for (const [cluster, { knative }] of deps.clusters) if (knative) gates.set(cluster, createGate(knative))
  app.addHook('onClose', async () => {
    for (const gate of gates.values()) gate.close()
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser(CONTENT_TYPES, { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body)

  // Who may not send is told before anything of the body is read.
  app.addHook('onRequest', async (request, reply) => {
    const cluster = clusterOf(request)
    if (!deps.clusters.has(cluster))
      return reply.code(404).send({ message: 'The server knows no cluster of this name: it must be in its settings' })
    const gate = gates.get(cluster)
    if (!gate)
      return reply.code(404).send({
        message:
          'Events of Knative are not taken for this cluster: set WINDLASS_KNATIVE_OIDC_ISSUER or WINDLASS_KNATIVE_TOKENS for the command server',
      })
    const refusal = await gate.refusalOf(request.headers.authorization)
    if (refusal === undefined) return
    refusals.warn(`knative ${cluster} ${refusal}`, { cluster, reason: refusal }, 'an event of Knative was refused')
    return reply.code(401).header('www-authenticate', 'Bearer realm="Windlass"').send({ message: refusal })
  })
  app.addHook('onResponse', async (request, reply) => {
    const cluster = clusterOf(request)
    if (gates.has(cluster))
      deps.metrics.increment('windlass_knative_events_total', 1, { cluster, status: String(reply.statusCode) })
  })

  app.post(
    '/v1/clusters/:cluster/knative',
    // The schema is for people and clients; the body is checked by `readKnativeEvent`.
    {
      config: { contentTypes: `${BINARY_CONTENT_TYPE} with headers ce-…, or ${STRUCTURED_CONTENT_TYPE}` },
      schema,
      validatorCompiler: () => () => true,
      attachValidation: true,
    },
    async (request, reply) => {
      const { cluster } = request.params
      const bytes: unknown = request.body
      const given = readCloudEvent(request.headers, Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0))
      const { event, faults } = given.faults ? given : readKnativeEvent(given.event)
      if (faults) {
        refusals.warn(
          `knative ${cluster} contract`,
          { cluster, faults: faults.slice(0, 3) },
          'an event of Knative was refused',
        )
        return reply.code(400).send({ message: 'The event is not one that Windlass has a use for', faults })
      }
      const traceparent = [event.traceparent, request.headers.traceparent].find(isTraceparent) ?? newTraceparent()
      const placing = deps.clusters.get(cluster)?.placing ?? { classes: {} }
      const batch = batchOf(event, { cluster, traceparent, placing, nowMs: now() })
      const { epoch } = await receive(deps, epochs, batch)
      // Without a body: to a Trigger or a Subscription that would be an event in reply.
      return reply.code(202).header(EPOCH_HEADER, epoch).send(undefined)
    },
  )
}

const clusterOf = (request: FastifyRequest) => (request.params as { cluster: string }).cluster

const isTraceparent = (value: unknown): value is string => typeof value === 'string' && traceIdOf(value) !== undefined
