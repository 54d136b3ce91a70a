/** A field that an object's validation did not accept, as `details.causes` names it. */
export interface Cause {
  field: string
  reason:
    | 'FieldValueForbidden'
    | 'FieldValueInvalid'
    | 'FieldValueRequired'
    | 'FieldValueNotSupported'
    | 'FieldValueDuplicate'
  message: string
}

/** A request that the API refuses; becomes a `Status` body. */
export class Refusal extends Error {
  readonly code: number
  readonly reason: string
  readonly details: Record<string, unknown> | undefined

  constructor(code: number, reason: string, message: string, details?: Record<string, unknown>) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }

  toStatus() {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details ? { details: this.details } : {}),
      code: this.code,
    }
  }
}

export const badRequest = (message: string) => new Refusal(400, 'BadRequest', message)
export const notFoundPath = () => new Refusal(404, 'NotFound', 'the server could not find the requested resource', {})
export const notFound = (plural: string, name: string) =>
  new Refusal(404, 'NotFound', `${plural} "${name}" not found`, { name, kind: plural })
export const alreadyExists = (plural: string, name: string) =>
  new Refusal(409, 'AlreadyExists', `${plural} "${name}" already exists`, { name, kind: plural })
export const conflict = (plural: string, name: string, why: string) =>
  new Refusal(409, 'Conflict', `Operation cannot be fulfilled on ${plural} "${name}": ${why}`, { name, kind: plural })
export const expired = (message: string) => new Refusal(410, 'Expired', message)
/** What the API says of a JSON patch that fails: no cause, no field. */
export const unprocessablePatch = () =>
  new Refusal(422, 'Invalid', 'the server rejected our request due to an error in our request', {})

export function invalid(kind: string, name: string, causes: Cause[]): Refusal {
  const said = causes.map(({ field, message }) => `${field}: ${message}`)
  const list = said.length === 1 ? said[0] : `[${said.join(', ')}]`
  return new Refusal(422, 'Invalid', `${kind} "${name}" is invalid: ${list}`, { name, kind, causes })
}
