import { Transform } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { transient } from '../../errors.ts'

/** What a piece of a body costs beside its bytes: pieces of one byte each must not hold many times what is counted. */
const PIECE_BYTES = 256

/** Until a request has arrived whole: thrice what a forwarder waits for its answer, so that no honest one is cut, also over a slow line. */
export const REQUEST_TIMEOUT_MS = 30_000

/** So many bodies of the greatest length are held at a time, over all connections. */
export const LONGEST_BODIES = 8

interface Body {
  bytes: number
  refuse(): void
}

/**
 * Bounds what bodies hold, over all connections, until they are answered. When it is too much, the one that has been arriving for longest is
 * answered 503: whoever sends at an honest pace is never that one, however many others hold theirs back.
 */
export function limitBodies(app: FastifyInstance, limitBytes: number): void {
  let held = 0
  const arriving = new Set<Body>()

  app.addHook('preParsing', async (request, reply, payload) => {
    const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
    if (encoding === undefined && length === '0') return payload
    const stream = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        body.bytes += chunk.length + PIECE_BYTES
        held += chunk.length + PIECE_BYTES
        for (const oldest of arriving) {
          if (held <= limitBytes) break
          oldest.refuse()
        }
        if (!stream.destroyed) done(null, chunk)
      },
      flush(done) {
        arriving.delete(body)
        done()
      },
    })
    const release = () => {
      arriving.delete(body)
      held -= body.bytes
      body.bytes = 0
      // What still comes flows off, so that its sender reads the answer.
      payload.unpipe(stream)
      payload.resume()
    }
    const body: Body = {
      bytes: 0,
      refuse() {
        release()
        stream.destroy(transient('The server holds as much of other requests as it may: try again in a moment'))
      },
    }
    arriving.add(body)
    payload.once('error', (error) => stream.destroy(error))
    reply.raw.once('close', () => {
      release()
      stream.destroy()
    })
    return payload.pipe(stream)
  })
}
