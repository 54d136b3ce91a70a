import { readFileSync } from 'node:fs'
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { isTrusted } from '../../config/knative.ts'
import type { OidcSettings } from '../../config/types.ts'
import { messageOf, throttled, transient, WindlassError } from '../../errors.ts'
import { HttpClient } from '../../http/client.ts'

export interface OidcVerifier {
  /** Why a token is not let in; undefined when it is. Throws `transient` or `throttled` when that can't be told now. */
  refusalOf(token: string): Promise<string | undefined>
  close(): void
}

/** Of key pairs only, whatever a token asks for. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** How far the issuer's clock may be from ours. */
const CLOCK_TOLERANCE_S = 60
export interface Pauses {
  /** For so long after its keys were read, an issuer is not asked for a key that was not among them. */
  afterKeysMs: number
  /** For so long after its keys could not be read, it is not asked again. */
  afterFailureMs: number
}

const PAUSES: Pauses = { afterKeysMs: 5000, afterFailureMs: 1000 }
const TIMEOUT_MS = 5000
/** An API server has its keys in the former form only. */
const KEYS_OR_DOCUMENT = 'application/jwk-set+json, application/json'
const MAX_BYTES = 1024 * 1024

/** Checks tokens that an issuer signs, such as an API server does for Knative, by the keys that it publishes. */
export function createOidcVerifier(settings: OidcSettings, pauses = PAUSES): OidcVerifier {
  const { issuer, audience, subject } = settings
  const http = new HttpClient(settings.caFile === undefined ? {} : { extraCa: readFileSync(settings.caFile) })
  const keysUrl = settings.jwksUrl ?? `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`
  const keys = createRemoteJWKSet(new URL(keysUrl), {
    cooldownDuration: pauses.afterKeysMs,
    // Longer than both requests take: what the client has to say about them says more.
    timeoutDuration: 3 * TIMEOUT_MS,
    [customFetch]: pausing(fetchKeys, pauses.afterFailureMs),
  })

  async function fetchKeys(): Promise<Response> {
    return Response.json(await get(settings.jwksUrl ?? (await discover())))
  }

  /** Asked each time: an API server that is replaced has its keys at another address. */
  async function discover(): Promise<string> {
    const document = (await get(keysUrl)) as { issuer?: unknown; jwks_uri?: unknown }
    if (document.issuer !== issuer)
      throw transient(`${keysUrl} is the document of another issuer, ${JSON.stringify(document.issuer)}`)
    const url = document.jwks_uri
    if (typeof url !== 'string' || !URL.canParse(url) || !isTrusted(url))
      throw transient(`${keysUrl} names no address of keys that nobody on the way can change`)
    return url
  }

  async function get(url: string): Promise<unknown> {
    const headers = { accept: KEYS_OR_DOCUMENT }
    const { status, body } = await http.request({
      method: 'GET',
      url,
      headers,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
    })
    if (status !== 200) throw transient(`${url} was answered ${status}`)
    try {
      return JSON.parse(body.toString('utf8')) ?? {}
    } catch {
      throw transient(`${url} was answered with something else than JSON`)
    }
  }

  const keyFor: JWTVerifyGetKey = async (header, token) => {
    const { coolingDown } = keys
    try {
      return await keys(header, token)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey && coolingDown)
        throw throttled(
          'The key of the token is not known yet: the keys of its issuer were read just before',
          Date.now() + pauses.afterKeysMs,
        )
      if (KEY_OF_TOKEN.some((kind) => error instanceof kind)) throw error
      if (!(error instanceof errors.JOSEError || error instanceof WindlassError)) throw error
      throw transient(
        `The keys of the issuer ${issuer} can't be had (${messageOf(error)}): the server must reach them, see WINDLASS_KNATIVE_OIDC_JWKS_URL and WINDLASS_KNATIVE_OIDC_CA_FILE`,
      )
    }
  }

  return {
    async refusalOf(token) {
      try {
        const { payload } = await jwtVerify(token, keyFor, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          subject,
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE_S,
        })
        return isForUsAlone(payload) ? undefined : 'it has other audiences beside'
      } catch (error) {
        if (error instanceof errors.JOSEError) return sentenceOf(error)
        if (error instanceof WindlassError) throw error
        // An issuer may publish what is no key of use, such as one that is too short.
        throw transient(
          `The key of the issuer ${issuer} that the token names can't be used (${messageOf(error)}): the issuer must publish another`,
        )
      }
    },
    close: () => http.close(),
  }
}

/** What is wrong with a token, as opposed to the keys. */
const KEY_OF_TOKEN = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported]

/** A token that another audience gets too could be passed on by it. */
const isForUsAlone = ({ aud }: JWTPayload) => typeof aud === 'string' || aud?.length === 1

function sentenceOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'it is expired'
  if (error instanceof errors.JWTClaimValidationFailed)
    return error.reason === 'missing'
      ? `its claim "${error.claim}" is missing`
      : `its claim "${error.claim}" is another`
  if (error instanceof errors.JWKSNoMatchingKey) return 'none of its issuer’s keys signed it'
  if (error instanceof errors.JWKSMultipleMatchingKeys) return 'it does not say which key signed it'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong'
  return `it is not one that can be checked (${error.code})`
}

/** Whoever asks shortly after a failure gets the same one: senders whose tokens can't be checked don't add to what an issuer has to do. */
function pausing(fetchKeys: () => Promise<Response>, afterFailureMs: number): () => Promise<Response> {
  let failed: { error: unknown; atMs: number } | undefined
  return async () => {
    if (failed && performance.now() - failed.atMs < afterFailureMs) throw failed.error
    try {
      const answer = await fetchKeys()
      failed = undefined
      return answer
    } catch (error) {
      failed = { error, atMs: performance.now() }
      throw error
    }
  }
}
