import { CloudEvent, HTTP } from 'cloudevents'
import t from 'tap'
import { projectNode } from '../../src/events/projection.ts'
import { BATCH_CONTENT_TYPE, EVENT_TYPE, sourceOf, type WindlassEvent } from '../../src/events/types.ts'
import { newTraceparent } from '../../src/telemetry/traceparent.ts'

const node = projectNode({
  metadata: { name: 'w1', uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' },
})

const envelope = {
  specversion: '1.0',
  source: sourceOf('prod'),
  time: '2026-01-01T00:00:00.000Z',
  datacontenttype: 'application/json',
  traceparent: newTraceparent(),
} as const

const events: WindlassEvent[] = [
  { ...envelope, id: '1', type: EVENT_TYPE.snapshotBegin, data: { kind: 'Node', snapshot: 's1' } },
  { ...envelope, id: '2', type: EVENT_TYPE.nodeChanged, subject: 'Node/w1', snapshot: 's1', data: node },
  { ...envelope, id: '3', type: EVENT_TYPE.nodeDeleted, subject: 'Node/w1', data: { uid: 'u', resourceVersion: '9' } },
]

t.test("our events are CloudEvents to the specification's own library", async (t) => {
  for (const event of events) t.ok(new CloudEvent(event as never).validate(), event.type)
})

t.test('a batch is read by it as the events that it has', async (t) => {
  const read = HTTP.toEvent({ headers: { 'content-type': BATCH_CONTENT_TYPE }, body: JSON.stringify(events) })
  t.same(
    [read].flat().map(({ id, type, source }) => ({ id, type, source })),
    events.map(({ id, type, source }) => ({ id, type, source })),
  )
})
