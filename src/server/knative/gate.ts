import type { KnativeSettings } from '../../config/types.ts'
import { sameSecret } from '../plugins/bearer.ts'
import { createOidcVerifier, type Pauses } from './oidc.ts'

/** Decides who may send a cluster's events by way of Knative. */
export interface Gate {
  /** Why not, as a sentence; undefined when they may. Throws `transient` or `throttled` when that can't be told now. */
  refusalOf(authorization: string | undefined): Promise<string | undefined>
  close(): void
}

export function createGate({ tokens, oidc }: KnativeSettings, pauses?: Pauses): Gate {
  const verifier = oidc && createOidcVerifier(oidc, pauses)
  const wanted = [
    ...(tokens.length > 0 ? ['one of the tokens that the server has for this cluster'] : []),
    ...(oidc ? ['one that the issuer made for the audience that the server has for this cluster'] : []),
  ].join(', or ')
  return {
    async refusalOf(authorization = '') {
      const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
      if (token === undefined) return `A bearer token is needed: ${wanted}`
      // All are compared, so that the time does not tell which was nearly right.
      if (tokens.filter((one) => sameSecret(token, one)).length > 0) return undefined
      if (!verifier || !isJwt(token)) return `The bearer token is not the right one: it must be ${wanted}`
      const reason = await verifier.refusalOf(token)
      return reason === undefined ? undefined : `The bearer token is not taken, since ${reason}: it must be ${wanted}`
    },
    close: () => verifier?.close(),
  }
}

const isJwt = (token: string) => token.split('.').length === 3
