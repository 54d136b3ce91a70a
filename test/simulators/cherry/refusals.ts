import type { Fault } from '../faults.ts'
import { Refusal } from '../refusal.ts'

/** As the API words it: {"code": STATUS, "message": "…"}. */
export function refusal(status: number, message: string): Refusal {
  return new Refusal(String(status), message, null, status)
}

export function badRequest(message: string): Refusal {
  return refusal(400, message)
}

export function notFound(what: string): Refusal {
  return refusal(404, `${what} not found`)
}

export function simulated(fault: Fault): Refusal {
  const status = fault.status ?? 500
  return refusal(status, fault.message ?? `simulated ${status}`)
}
