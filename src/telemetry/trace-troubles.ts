import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { messageOf } from '../errors.ts'
import type { Logger } from './log.ts'

/** An exporter tries again for long before it gives up: a receiver that has not taken a batch by then is told of. */
const SLOW_MS = 3000
const AGAIN_MS = 60_000

/** Tells of a receiver that does not take traces: soon, then once a minute with how many batches were lost, and when it takes them again. */
export class TraceTroubles {
  readonly #receiver: string
  readonly #log: Logger
  #toldAtMs: number | undefined
  #lost = 0

  constructor(endpoint: string, log: Logger) {
    this.#receiver = new URL(endpoint).host
    this.#log = log
  }

  tell(error: unknown): void {
    const nowMs = performance.now()
    if (this.#toldAtMs !== undefined && nowMs - this.#toldAtMs < AGAIN_MS) return
    this.#toldAtMs = nowMs
    const what = messageOf(error).slice(0, 500)
    this.#log.warn(
      { receiver: this.#receiver, lostBatches: this.#lost, error: what },
      'traces can not be sent: check OTEL_EXPORTER_OTLP_ENDPOINT, and its receiver',
    )
  }

  /** The same exporter, with an eye on what comes of its batches. */
  watch(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        const slow = setTimeout(() => this.tell(`no answer within ${SLOW_MS} ms`), SLOW_MS).unref()
        exporter.export(spans, (result) => {
          clearTimeout(slow)
          if (result.code === EXPORTED) this.#sent()
          else {
            this.#lost++
            this.tell(result.error ?? 'the batch was not taken')
          }
          done(result)
        })
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => exporter.forceFlush?.(),
    }
  }

  #sent(): void {
    if (this.#toldAtMs !== undefined)
      this.#log.info({ receiver: this.#receiver, lostBatches: this.#lost }, 'traces are sent again')
    this.#toldAtMs = undefined
    this.#lost = 0
  }
}

/** OpenTelemetry's `ExportResultCode.SUCCESS`. */
const EXPORTED = 0
