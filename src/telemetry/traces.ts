import { setTimeout as sleep } from 'node:timers/promises'
import type { Attributes, Context, SpanKind as Kinds, Span, Tracer } from '@opentelemetry/api'
import { messageOf } from '../errors.ts'
import type { Logger } from './log.ts'
import { TraceTroubles } from './trace-troubles.ts'
import { newTraceparent, traceIdOf } from './traceparent.ts'

export interface TracesOptions {
  /** Base address of an OTLP receiver over HTTP; `/v1/traces` is added. */
  endpoint: string
  /** `service.name`, where `OTEL_SERVICE_NAME` does not say another. */
  service: string
  version: string
  /** Share of new traces that are kept, 0 to 1. A trace that another process keeps is kept here too. */
  ratio: number
  log: Logger
}

export interface SpanOptions {
  kind?: keyof typeof Kinds
  /** Trace context of the span that asked for this one, possibly in another process; the span around this one if absent. */
  parent?: string | undefined
  /** Unix milliseconds; now if absent. */
  startMs?: number
  attributes?: Attributes
}

export interface OpenSpan {
  /** Its trace context, for those who go on with the work. */
  readonly traceparent: string
  end(result?: { attributes?: Attributes; error?: unknown }): void
}

interface Tracing {
  api: typeof import('@opentelemetry/api')
  tracer: Tracer
  stop(): Promise<void>
}

/** What is left at the end gets so long. */
const LAST_MS = 2000

/** Of the process, as OpenTelemetry's own registry is. Until it is started a span costs nothing, and its packages are not loaded. */
let tracing: Tracing | undefined

/** Sends spans of this process to an OTLP receiver, until `stopTraces`. A receiver that is away stops no work. */
export async function startTraces({ endpoint, service, version, ratio, log }: TracesOptions): Promise<void> {
  const [api, sdk, { AsyncLocalStorageContextManager }, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const troubles = new TraceTroubles(endpoint, log)
  api.diag.setLogger(
    {
      error: (what) => troubles.tell(what),
      warn: (what) => troubles.tell(what),
      info: () => {},
      debug: () => {},
      verbose: () => {},
    },
    api.DiagLogLevel.WARN,
  )
  const provider = new sdk.TracerProvider({
    resource: resources
      .resourceFromAttributes({ 'service.name': service, 'service.version': version })
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: troubles.watch(new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` })),
      }),
    ],
  })
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  tracing = {
    api,
    tracer: provider.getTracer('windlass', version),
    // An exporter tries again for long, and a process must end.
    stop: () =>
      Promise.race([provider.shutdown(), sleep(LAST_MS, undefined, { ref: false })]).catch((error) =>
        log.warn({ error: messageOf(error) }, 'the last traces could not be sent'),
      ),
  }
}

/** Sends what is left. */
export async function stopTraces(): Promise<void> {
  const ending = tracing
  tracing = undefined
  await ending?.stop()
}

/** Whether spans are recorded at all. */
export const isTracing = () => tracing !== undefined

/** A span whose end is elsewhere than its begin. What is never ended is never sent. */
export function beginSpan(name: string, options: SpanOptions = {}): OpenSpan {
  if (!tracing) return { traceparent: options.parent ?? newTraceparent(), end: () => {} }
  const { api } = tracing
  const span = open(tracing, name, options)
  return {
    traceparent: traceparentOf(span),
    end: ({ attributes = {}, error } = {}) => close(api, span.setAttributes(attributes), error),
  }
}

/** Runs something inside a span, which is the parent of all that are begun in it. What it throws is the span's error. */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  run: (span: { set(attributes: Attributes): void }) => Promise<T>,
): Promise<T> {
  if (!tracing) return await run(NO_SPAN)
  const { api } = tracing
  const span = open(tracing, name, options)
  try {
    const result = await api.context.with(api.trace.setSpan(api.context.active(), span), () =>
      run({ set: (attributes) => void span.setAttributes(attributes) }),
    )
    close(api, span)
    return result
  } catch (error) {
    close(api, span, error)
    throw error
  }
}

/** As `inSpan`, for details: only where there is a span around it. */
export async function inDetail<T>(
  name: string,
  options: SpanOptions,
  run: Parameters<typeof inSpan<T>>[2],
): Promise<T> {
  const around = tracing?.api.trace.getActiveSpan()
  return around ? await inSpan(name, options, run) : await run(NO_SPAN)
}

const NO_SPAN = { set: () => {} }

function open(
  { api, tracer }: Tracing,
  name: string,
  { kind = 'INTERNAL', parent, startMs, attributes = {} }: SpanOptions,
) {
  const context = parent === undefined ? api.context.active() : contextOf(api, parent)
  const options = { kind: api.SpanKind[kind], attributes, ...(startMs === undefined ? {} : { startTime: startMs }) }
  return tracer.startSpan(name, options, context)
}

function close(api: Tracing['api'], span: Span, error?: unknown): void {
  if (error !== undefined) span.setStatus({ code: api.SpanStatusCode.ERROR, message: messageOf(error).slice(0, 1000) })
  span.end()
}

/** A trace context of another version or form begins a new trace. */
function contextOf(api: Tracing['api'], traceparent: string): Context {
  const traceId = traceIdOf(traceparent)
  const [, , spanId = '', flags = '00'] = traceparent.split('-')
  if (traceId === undefined) return api.ROOT_CONTEXT
  const traceFlags = Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED
  return api.trace.setSpanContext(api.ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`
}
