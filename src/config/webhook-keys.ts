import type { Parser } from './grammar.ts'

/** Fewest bytes of a Standard Webhooks secret. */
const LEAST_BYTES = 24

/** Standard Webhooks secrets, `whsec_` and base64 or base64 alone, as a comma list. */
export const parseWebhookKeys: Parser<string[]> = (text) => {
  const keys = text.split(',').map((key) => key.trim())
  for (const [index, key] of keys.entries()) {
    const which = keys.length === 1 ? '' : ` (key ${index + 1} of ${keys.length})`
    const base64 = key.replace(/^whsec_/, '')
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64) || base64 === '') {
      return { fault: `is not base64${which}, ${RIGHT}` }
    }
    const bytes = Buffer.from(base64, 'base64').length
    if (bytes < LEAST_BYTES) return { fault: `has only ${bytes} bytes${which}, ${RIGHT}` }
  }
  return { value: keys }
}

const RIGHT = `write whsec_ and the base64 of at least ${LEAST_BYTES} random bytes, several keys with commas between`
