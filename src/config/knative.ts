import { conceal } from './conceal.ts'
import type { Fault } from './fault.ts'
import { faultOfCertificates } from './files.ts'
import { type Parser, parseHttpUrl, parseList } from './grammar.ts'
import type { Values } from './setting.ts'
import type { CLUSTER } from './table/windlass.ts'
import type { ClusterSettings, KnativeSettings } from './types.ts'

const LEAST_CHARACTERS = 24

/** Bearer tokens as RFC 6750 has them, as a comma list. */
export const parseBearerTokens: Parser<string[]> = (text) => {
  const tokens = text.split(',').map((token) => token.trim())
  for (const [index, token] of tokens.entries()) {
    const which = tokens.length === 1 ? '' : ` (token ${index + 1} of ${tokens.length})`
    if (!/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return { fault: `is no bearer token${which}, ${RIGHT}` }
    if (token.length < LEAST_CHARACTERS) return { fault: `is only ${token.length} characters long${which}, ${RIGHT}` }
  }
  return { value: tokens }
}

const RIGHT = `write at least ${LEAST_CHARACTERS} random letters, digits and any of -._~+/, several tokens with commas between`

/** Where keys come from that decide who is let in: nobody on the way may change them. Kept as written, since a token names its issuer so. */
export const parseTrustedUrl: Parser<string> = (text) => {
  const parsed = parseHttpUrl(text)
  if ('fault' in parsed || isTrusted(text)) return 'fault' in parsed ? parsed : { value: text }
  return { fault: 'is not encrypted, write a URL with https' }
}

/** Encrypted, or on this machine. */
export function isTrusted(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || LOOPBACK.test(hostname)
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/

type KnativeKey = Extract<keyof typeof CLUSTER, `knative${string}`>

interface Place {
  /** What faults call a key: its place in a file of clusters, or its variable. */
  place: (key: KnativeKey) => string
  faults: Fault[]
}

/** Who may send a cluster's events by way of Knative; undefined when nobody may. */
export function knativeOf(
  values: Pick<Values<typeof CLUSTER>, KnativeKey>,
  { place, faults }: Place,
): KnativeSettings | undefined {
  const {
    knativeTokens,
    knativeOidcIssuer: issuer,
    knativeOidcAudience: audience,
    knativeOidcSubject: subject,
    knativeOidcJwksUrl: jwksUrl,
    knativeOidcCaFile: caFile,
  } = values
  if (issuer === undefined && !faults.some(({ name }) => ISSUER.test(name)))
    for (const key of OF_ISSUER)
      if (values[key] !== undefined)
        faults.push({ name: place(key), message: `has no effect without ${place('knativeOidcIssuer')}, set that too` })
  if (issuer !== undefined && audience === undefined)
    faults.push({
      name: place('knativeOidcAudience'),
      message: `is missing: without it every token of ${place('knativeOidcIssuer')} would be taken. Write what the ApiServerSource has as audience of its sink`,
    })
  const caFault = caFile === undefined ? undefined : faultOfCertificates(caFile)
  if (caFault !== undefined)
    faults.push({ name: place('knativeOidcCaFile'), message: `${JSON.stringify(caFile)} ${caFault}` })
  const parsed = knativeTokens === undefined ? undefined : parseList(knativeTokens.read())
  const tokens = parsed !== undefined && 'value' in parsed ? parsed.value : []
  if (tokens.length === 0 && issuer === undefined) return undefined
  return conceal(
    {
      tokens,
      ...(issuer === undefined ? {} : { oidc: { issuer, audience: audience ?? '', subject, jwksUrl, caFile } }),
    },
    'tokens',
  )
}

/** As variable, flag or key. */
const ISSUER = /knative.?oidc.?issuer/i

const OF_ISSUER = ['knativeOidcAudience', 'knativeOidcSubject', 'knativeOidcJwksUrl', 'knativeOidcCaFile'] as const

/** What one cluster takes, no other may: else whoever speaks for the one could speak for the other. */
export function faultsBetween(
  clusters: readonly ClusterSettings[],
  place: (key: KnativeKey, id: string) => string,
): Fault[] {
  const faults: Fault[] = []
  const owners = new Map<string, string>()
  const claim = (what: string, { id }: ClusterSettings, key: KnativeKey, message: (owner: string) => string) => {
    const owner = owners.get(what)
    if (owner !== undefined) faults.push({ name: place(key, id), message: message(owner) })
    else owners.set(what, id)
  }
  for (const cluster of clusters) {
    const { tokens = [], oidc } = cluster.knative ?? {}
    for (const token of new Set(tokens))
      claim(
        `token ${token}`,
        cluster,
        'knativeTokens',
        (owner) => `(not shown) has a token that cluster ${owner} has too: give each its own`,
      )
    if (oidc)
      claim(
        `audience ${oidc.issuer} ${oidc.audience}`,
        cluster,
        'knativeOidcAudience',
        (owner) => `is that of cluster ${owner}, which has the same issuer: give each its own`,
      )
  }
  return faults
}
