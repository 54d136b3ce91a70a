import type { Fault } from './types.ts'

export const BINARY_CONTENT_TYPE = 'application/json'
export const STRUCTURED_CONTENT_TYPE = 'application/cloudevents+json'

type Headers = Readonly<Record<string, string | string[] | undefined>>

export type Read<T> = (T & { faults?: undefined }) | ({ faults: Fault[] } & { [K in keyof T]?: undefined })

/**
 * The one CloudEvent of a request, in either content mode, as JSON would have it. Nothing is checked but that it is JSON, and attributes in
 * headers stay as they came: the specification would have some of them in percent-encoding, and not every library of its own knows.
 * @param headers names in lower case, as Node gives them
 */
export function readCloudEvent(headers: Headers, body: Buffer): Read<{ event: Record<string, unknown> }> {
  return mediaTypeOf(headers) === STRUCTURED_CONTENT_TYPE ? structured(body) : binary(headers, body)
}

function structured(body: Buffer): Read<{ event: Record<string, unknown> }> {
  const json = parsed(body)
  if (!isObject(json)) return { faults: [{ path: '$', message: 'must be a CloudEvent, a JSON object' }] }
  const { data_base64: encoded, ...event } = json
  if (encoded === undefined) return { event }
  const data = typeof encoded === 'string' ? parsed(Buffer.from(encoded, 'base64')) : undefined
  if (data === undefined) return { faults: [{ path: '$.data_base64', message: 'must be JSON in base64' }] }
  return { event: { ...event, data } }
}

function binary(headers: Headers, body: Buffer): Read<{ event: Record<string, unknown> }> {
  const data = parsed(body)
  if (data === undefined) return { faults: [{ path: '$.data', message: 'must be JSON: it is the body' }] }
  const attributes = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    name.startsWith('ce-') && typeof value === 'string' ? [[name.slice('ce-'.length), value]] : [],
  )
  return { event: { ...Object.fromEntries(attributes), data } }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const mediaTypeOf = (headers: Headers) => String(headers['content-type']).split(';')[0]?.trim().toLowerCase()
