import type { Read } from './http-binding.ts'
import {
  checkEnvelope,
  checkNode,
  checkReference,
  checkService,
  KNATIVE_TYPE,
  type KnativeType,
} from './knative-schema.ts'
import { type NodeProjection, projectNode, projectService, type ServiceProjection } from './projection.ts'
import type { ObjectRef } from './subject.ts'

/** Where events of Knative's ApiServerSource are posted to. */
export const knativePath = (cluster: string) => `/v1/clusters/${encodeURIComponent(cluster)}/knative`

/** An event of an ApiServerSource about an object that Windlass looks at. */
export interface KnativeEvent {
  id: string
  source: string
  type: KnativeType
  time?: string
  traceparent?: string
  deleted: boolean
  about: KnativeObject
}

/** The object as the event has it (in mode `Resource`), or only which it is (in mode `Reference`). */
export type KnativeObject =
  | { kind: 'Node'; node: NodeProjection }
  | { kind: 'Service'; service: ServiceProjection }
  | { kind: 'reference'; ref: ObjectRef }

/** Makes sense of a CloudEvent, or says by JSON path what is wrong with it. */
export function readKnativeEvent(json: unknown): Read<{ event: KnativeEvent }> {
  const envelope = checkEnvelope(json)
  if (envelope.faults) return envelope
  const { id, source, type, time, traceparent, data } = envelope.value
  const about = aboutOf(type, data)
  if (about.faults) return about
  return { event: { id, source, type, time, traceparent, deleted: type.endsWith('.delete'), about: about.value } }
}

function aboutOf(type: KnativeType, data: { kind: 'Node' | 'Service' }): Read<{ value: KnativeObject }> {
  if (isReference(type)) {
    const reference = checkReference(data)
    if (reference.faults) return reference
    return { value: { kind: 'reference', ref: reference.value } }
  }
  if (data.kind === 'Node') {
    const node = checkNode(data)
    return node.faults ? node : { value: { kind: 'Node', node: projectNode(node.value) } }
  }
  const service = checkService(data)
  return service.faults ? service : { value: { kind: 'Service', service: projectService(service.value) } }
}

const REFERENCES: readonly KnativeType[] = [KNATIVE_TYPE.refAdd, KNATIVE_TYPE.refUpdate, KNATIVE_TYPE.refDelete]
const isReference = (type: KnativeType) => REFERENCES.includes(type)
