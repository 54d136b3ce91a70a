import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t from 'tap'
import { FileSecret, FixedSecret } from '../../src/config/secret.ts'

/** A secret in a file, with a clock of the test's own. */
function inFile(path: string, check?: ConstructorParameters<typeof FileSecret>[0]['check']) {
  let nowMs = 0
  const secret = new FileSecret({ name: 'HCLOUD_TOKEN_FILE', path, check, now: () => nowMs })
  const after = (ms: number) => {
    nowMs += ms
    return secret
  }
  return { secret, after }
}

t.test('a file is read again when it has changed, and looked at once a second', async (t) => {
  const path = join(t.testdir({ token: '\n first \n' }), 'token')
  const { secret, after } = inFile(path)
  t.equal(secret.read(), 'first', 'blanks and line breaks around it are dropped')
  writeFileSync(path, 'second, longer')
  t.equal(after(999).read(), 'first', 'not looked at yet')
  t.equal(after(1).read(), 'second, longer')
})

t.test('a mounted secret is replaced by turning a link', async (t) => {
  const dir = t.testdir({ a: { token: 'one' }, b: { token: 'two' }, now: t.fixture('symlink', 'a') })
  const { secret, after } = inFile(join(dir, 'now', 'token'))
  t.equal(secret.read(), 'one')
  symlinkSync('b', join(dir, 'next'))
  renameSync(join(dir, 'next'), join(dir, 'now'))
  t.equal(after(1000).read(), 'two')
})

t.test('the last good value stays while the file is missing, empty or wrong', async (t) => {
  const path = join(t.testdir({ token: 'good' }), 'token')
  const { secret, after } = inFile(path, (text) => (text.startsWith('bad') ? { fault: 'is bad' } : { value: text }))
  t.equal(secret.fault, undefined)
  writeFileSync(path, 'bad, this one')
  t.equal(after(1000).read(), 'good')
  t.equal(secret.fault, 'is bad')
  writeFileSync(path, ' ')
  t.equal(after(1000).read(), 'good')
  t.equal(secret.fault, 'is empty')
  rmSync(path)
  t.equal(after(1000).read(), 'good')
  t.equal(secret.fault, "can't be read (ENOENT)")
  writeFileSync(path, 'new and good')
  t.equal(after(1000).read(), 'new and good')
  t.equal(secret.fault, undefined)
})

t.test('without a good value to begin with there is no secret', async (t) => {
  const dir = t.testdir({ empty: ' \n' })
  t.throws(() => inFile(join(dir, 'empty')), { kind: 'permanent', message: 'is empty' })
  t.throws(() => inFile(join(dir, 'missing')), { message: "can't be read (ENOENT)" })
})

t.test('nothing prints a secret', async (t) => {
  const path = join(t.testdir({ token: 'planted-1' }), 'token')
  for (const secret of [inFile(path).secret, new FixedSecret('HCLOUD_TOKEN', 'planted-2')]) {
    t.match(secret.read(), /^planted/)
    t.notMatch(inspect({ secret }, { depth: null, showHidden: true }), /planted/)
    t.notMatch(JSON.stringify({ secret }), /planted/)
    t.notMatch(`${secret}`, /planted/)
  }
})
