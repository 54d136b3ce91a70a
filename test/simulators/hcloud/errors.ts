import type { Fault } from '../faults.ts'
import { Refusal } from '../refusal.ts'
import type { FieldProblem } from '../shape.ts'

/** HTTP status of each error code, as the public API documentation lists them. Codes of single calls not listed here are 422. */
const statusByCode: Record<string, number> = {
  json_error: 400,
  unauthorized: 401,
  token_readonly: 401,
  forbidden: 403,
  maintenance: 403,
  resource_limit_exceeded: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  uniqueness_error: 409,
  deprecated_api_endpoint: 410,
  resource_unavailable: 412,
  source_port_already_used: 412,
  unsupported_media_type: 415,
  invalid_input: 422,
  locked: 423,
  protected: 423,
  rate_limit_exceeded: 429,
  server_error: 500,
  bad_gateway: 502,
  unavailable: 503,
  timeout: 504,
}

/** As the API words a refusal. */
export class ApiError extends Refusal {
  constructor(code: string, message: string, details: unknown = null, status = statusOf(code)) {
    super(code, message, details, status)
  }
}

/** The error that an error fault stands for, with the status that belongs to its code. */
export function simulated(fault: Fault, code = fault.code ?? 'server_error'): ApiError {
  const message = fault.message ?? `${code} (simulated)`
  return new ApiError(code, message, fault.details ?? null, fault.status ?? statusOf(code))
}

export function statusOf(code: string): number {
  return statusByCode[code] ?? 422
}

export function invalidInput(problems: FieldProblem[]): ApiError {
  const names = problems.map((problem) => problem.name).join(', ')
  return new ApiError('invalid_input', `invalid input in fields ${names}`, { fields: problems })
}

export function invalidField(name: string, message: string): ApiError {
  return new ApiError('invalid_input', `invalid input in field '${name}': ${message}`, {
    fields: [{ name, messages: [message] }],
  })
}

export function notFound(kind: string, id: number | string): ApiError {
  return new ApiError('not_found', `${kind} with ID '${id}' not found`)
}

export function nameTaken(kind: string): ApiError {
  return new ApiError('uniqueness_error', `${kind} name is already used`, { fields: [{ name: 'name' }] })
}
