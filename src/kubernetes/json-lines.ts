import { transient } from '../errors.ts'

/** Kubernetes keeps no object of more than 1.5 MB; JSON may be a few times longer. */
const MAX_LINE_BYTES = 16 * 1024 * 1024
const NEWLINE = 0x0a

/** The documents of a stream with one JSON document per line, each as soon as its line is complete. */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown, void> {
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = takeLine(parts, chunk.subarray(start, end))
      parts = []
      length = 0
      start = end + 1
      if (line.trim() !== '') yield parseLine(line)
    }
    if (start === chunk.length) continue
    parts.push(chunk.subarray(start))
    length += chunk.length - start
    if (length > maxLineBytes)
      throw transient(`A watch of Kubernetes sent a line longer than ${maxLineBytes} bytes`, { code: 'too-long' })
  }
  // What is left is a line that was cut off: the connection broke in its middle.
}

function takeLine(parts: Buffer[], last: Buffer): string {
  return parts.length === 0 ? last.toString() : Buffer.concat([...parts, last]).toString()
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw transient('A watch of Kubernetes sent a line that is not JSON', { cause, code: 'not-json' })
  }
}
