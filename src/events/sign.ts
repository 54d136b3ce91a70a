import { Webhook } from 'standardwebhooks'

export const WEBHOOK_ID = 'webhook-id'
export const WEBHOOK_TIMESTAMP = 'webhook-timestamp'
export const WEBHOOK_SIGNATURE = 'webhook-signature'

/**
 * Headers that sign a body as Standard Webhooks do.
 * @param key `whsec_…` or plain base64
 * @param id names this body: the same for every attempt to deliver it; no dot, which would make the signed text ambiguous
 * @param timeMs unix time of the attempt, on the server's clock
 */
export function sign(key: string, id: string, timeMs: number, body: string): Record<string, string> {
  return {
    [WEBHOOK_ID]: id,
    [WEBHOOK_TIMESTAMP]: String(Math.floor(timeMs / 1000)),
    [WEBHOOK_SIGNATURE]: new Webhook(key).sign(id, new Date(timeMs), body),
  }
}
