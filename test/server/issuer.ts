import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Test } from 'tap'

export interface Issuer {
  readonly url: string
  readonly jwksUrl: string
  /** A token as an API server makes it; what `claims` has undefined is left out. */
  token(claims: JWTPayload, header?: { kid?: string; alg?: string }): Promise<string>
  /** Signs with a new key from now on; `publish` lets it be had, in place of the former or beside them. */
  rotate(): Promise<{ publish(how?: 'beside'): void }>
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
    const found: Record<string, { type: string; json: unknown }> = {
      '/.well-known/openid-configuration': { type: 'application/json', json: discovery },
      '/openid/v1/jwks': { type: 'application/jwk-set+json', json: { keys: published } },
    }
    const { type, json } = found[request.url ?? ''] ?? { type: 'text/plain', json: undefined }
    // As an API server, which has its keys in this form only.
    const status = json === undefined ? 404 : accepts(request.headers.accept, type) ? 200 : 406
    response.writeHead(instead?.status ?? status, { 'content-type': type })
    response.end(instead?.body ?? (status === 200 ? JSON.stringify(json) : ''))
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
        publish(how) {
          published = how === 'beside' ? [...published, jwk] : [jwk]
        },
      }
    },
    answer(with_) {
      instead = with_
    },
  }
}

const accepts = (accept = '*/*', type: string) =>
  accept.split(',').some((one) => ['*/*', type].includes(one.split(';')[0]?.trim() ?? ''))
