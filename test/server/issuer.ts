import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Test } from 'tap'

export interface Issuer {
  readonly url: string
  readonly jwksUrl: string
  /** A token as an API server makes it; what `claims` has undefined is left out. */
  token(claims: JWTPayload, header?: { kid?: string; alg?: string }): Promise<string>
  /** Signs with a new key from now on; `publish` puts it among those that can be had, in place of the former. */
  rotate(): Promise<{ publish(): void }>
  /** What is answered in place of the keys or the document. */
  answer(with_: { status: number; body: string } | undefined): void
  /** What the discovery document says in place of the truth. */
  document: Record<string, unknown>
  /** Paths that were asked for. */
  readonly asked: string[]
  /** Ends, so that connections are refused. */
  stop(): Promise<void>
  /** Begins again at the same address. */
  start(): Promise<void>
}

/** An issuer of tokens with its keys on loopback: the part of an API server that Knative's tokens come from. */
export async function startIssuer(t: Test, alg = 'RS256'): Promise<Issuer> {
  const pair = async (kid: string) => ({ kid, ...(await generateKeyPair(alg)) })
  let count = 1
  let signing = await pair('key-1')
  let published = [{ ...(await exportJWK(signing.publicKey)), kid: signing.kid, alg, use: 'sig' }]
  let instead: { status: number; body: string } | undefined
  const asked: string[] = []
  const document: Record<string, unknown> = {}
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const discovery = { issuer: url(), jwks_uri: `${url()}/openid/v1/jwks`, ...document }
    const found: Record<string, unknown> = {
      '/.well-known/openid-configuration': discovery,
      '/openid/v1/jwks': { keys: published },
    }
    const body = found[request.url ?? '']
    response.writeHead(instead?.status ?? (body ? 200 : 404), { 'content-type': 'application/json' })
    response.end(instead?.body ?? JSON.stringify(body ?? {}))
  })
  let port = 0
  const url = () => `http://127.0.0.1:${port}`
  const start = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  await start()
  port = (server.address() as AddressInfo).port
  t.teardown(stop)
  return {
    url: url(),
    jwksUrl: `${url()}/openid/v1/jwks`,
    document,
    asked,
    start,
    stop,
    async token(claims, header = {}) {
      const now = Math.floor(Date.now() / 1000)
      const all = { iss: url(), iat: now, nbf: now, exp: now + 3600, ...claims }
      return await new SignJWT(JSON.parse(JSON.stringify(all)) as JWTPayload)
        .setProtectedHeader({ alg, kid: signing.kid, ...header })
        .sign(signing.privateKey)
    },
    async rotate() {
      signing = await pair(`key-${++count}`)
      const jwk = { ...(await exportJWK(signing.publicKey)), kid: signing.kid, alg, use: 'sig' }
      return {
        publish() {
          published = [jwk]
        },
      }
    },
    answer(with_) {
      instead = with_
    },
  }
}
