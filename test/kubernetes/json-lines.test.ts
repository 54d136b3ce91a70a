import t from 'tap'
import { jsonLines } from '../../src/kubernetes/json-lines.ts'
import { failure } from './setting.ts'

async function read(chunks: string[] | Buffer[], maxLineBytes?: number) {
  async function* source() {
    for (const chunk of chunks) yield Buffer.from(chunk)
  }
  const documents: unknown[] = []
  for await (const document of jsonLines(source(), maxLineBytes)) documents.push(document)
  return documents
}

t.test('a stream gives its documents however it is cut', async (t) => {
  const bytes = Buffer.from('{"a":"ü€"}\n\r\n{"b":2}\n[3]\n')
  for (let size = 1; size <= bytes.length; size++) {
    const chunks: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
    t.same(await read(chunks), [{ a: 'ü€' }, { b: 2 }, [3]], `cut into ${size} bytes`)
  }
})

t.test('a line that is cut off at the end is not reported', async (t) => {
  t.same(await read(['{"a":1}\n{"b"']), [{ a: 1 }])
})

t.test('a line that is not JSON, or has no end, is an error', async (t) => {
  t.match(await failure(read(['<html>\n'])), { kind: 'transient', code: 'not-json' })
  t.match(await failure(read(['"', 'x'.repeat(60), 'x'.repeat(60)], 100)), { kind: 'transient', code: 'too-long' })
})
