import t from 'tap'
import { messageOf, permanent, transient } from '../src/errors.ts'

t.test('an error is told with its causes, each once', async (t) => {
  const cause = new Error('server 5 is not attached')
  t.equal(messageOf(transient('adding the target', { cause })), 'adding the target: server 5 is not attached')
  const saying = permanent(`node w1 is no target: ${cause.message}`, { cause })
  t.equal(messageOf(saying), 'node w1 is no target: server 5 is not attached')
  t.equal(messageOf(transient('a run', { cause: saying })), 'a run: node w1 is no target: server 5 is not attached')
  t.equal(messageOf(transient(messageOf(saying), { cause: saying })), messageOf(saying))
  t.equal(messageOf('text'), 'text')
})
