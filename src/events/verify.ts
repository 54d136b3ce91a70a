import { isUtf8 } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { SIGNATURE_TOLERANCE_MS } from './limits.ts'
import { WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP } from './sign.ts'

export type Verified = { id: string /** Unix time in seconds. */; timestamp: number; fault?: undefined }

export type SignatureFault = {
  /**
   * `missing`: a header is absent or not of its form; `bad-signature`: no key made any of the signatures;
   * `stale`: its time is too far from ours; of `verify`, that it was signed all the same.
   */
  fault: 'missing' | 'bad-signature' | 'stale'
  message: string
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** More than any rotation needs; each costs a comparison. */
const MAX_SIGNATURES = 10

/**
 * Who sent this body, and when: checks it against every key that is valid now.
 * The package's own `verify` reads the clock by itself, takes `12abc` as a time, and decodes the body first, so that
 * different bytes which are not UTF-8 would pass as each other: only its signature is used.
 * @param headers names in lower case, as Node gives them
 * @param rawBody the bytes as they came
 */
export function verify(
  keys: readonly string[],
  headers: Headers,
  rawBody: Buffer,
  nowMs: number,
): Verified | SignatureFault {
  const claim = readHeaders(headers)
  if ('fault' in claim) return claim
  const { id, seconds, given } = claim
  if (!isUtf8(rawBody) || !keys.some((key) => signedBy(key, id, seconds, rawBody, given)))
    return {
      fault: 'bad-signature',
      message:
        'No key of this cluster made the signature: the forwarder must sign with one of the keys that the server has for it',
    }
  return staleness(seconds, nowMs) ?? { id, timestamp: seconds }
}

/** What can be told of a batch without its body; a good one has more to prove. It tells the time to anybody, as every answer's `Date` does. */
export function faultOfHeaders(headers: Headers, nowMs: number): SignatureFault | undefined {
  const claim = readHeaders(headers)
  if ('fault' in claim) return claim
  if (!claim.given.some((one) => /^v1,[A-Za-z0-9+/]{43}=$/.test(one))) return missing(WEBHOOK_SIGNATURE, SIGNATURES)
  return staleness(claim.seconds, nowMs)
}

const SIGNATURES = '"v1,{base64}", several with a space between'

function readHeaders(headers: Headers): { id: string; seconds: number; given: string[] } | SignatureFault {
  const id = headers[WEBHOOK_ID]
  const timestamp = headers[WEBHOOK_TIMESTAMP]
  const signatures = headers[WEBHOOK_SIGNATURE]
  if (typeof id !== 'string' || !/^[A-Za-z0-9_-]{1,128}$/.test(id))
    return missing(WEBHOOK_ID, 'up to 128 letters, digits, "-" and "_"')
  if (typeof timestamp !== 'string' || !/^[1-9]\d{0,11}$/.test(timestamp))
    return missing(WEBHOOK_TIMESTAMP, 'unix time in seconds')
  if (typeof signatures !== 'string' || signatures === '') return missing(WEBHOOK_SIGNATURE, SIGNATURES)
  return { id, seconds: Number(timestamp), given: signatures.split(' ').slice(0, MAX_SIGNATURES) }
}

function staleness(seconds: number, nowMs: number): SignatureFault | undefined {
  if (Math.abs(nowMs - seconds * 1000) > SIGNATURE_TOLERANCE_MS)
    return {
      fault: 'stale',
      message: `The signature's time is ${Math.round(Math.abs(nowMs / 1000 - seconds))} s away from the server's clock, ${SIGNATURE_TOLERANCE_MS / 1000} s are allowed: sign anew with the server's time`,
    }
  return undefined
}

function signedBy(key: string, id: string, seconds: number, rawBody: Buffer, given: readonly string[]): boolean {
  const expected = Buffer.from(new Webhook(key).sign(id, new Date(seconds * 1000), rawBody))
  let found = false
  for (const one of given) {
    const signature = Buffer.from(one)
    if (signature.length === expected.length && timingSafeEqual(signature, expected)) found = true
  }
  return found
}

function missing(header: string, form: string): SignatureFault {
  return { fault: 'missing', message: `The header ${header} must be there once: ${form}` }
}
