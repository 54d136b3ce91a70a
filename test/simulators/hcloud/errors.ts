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

export interface FieldProblem {
  name: string
  messages: string[]
}

/** An answer of the API that is not a success. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number
  readonly details: unknown

  constructor(code: string, message: string, details: unknown = null, status = statusOf(code)) {
    super(message)
    this.code = code
    this.status = status
    this.details = details
  }

  get body(): { error: { code: string; message: string; details: unknown } } {
    return { error: { code: this.code, message: this.message, details: this.details } }
  }
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
