/** Where a connection goes to, as far as it may be told: never with a password. */
export interface RedisPlace {
  /** `host:port`, of sentinels several. */
  at: string
  /** Name of the primary, where sentinels are asked for it. */
  master?: string
  user?: string
  tls: boolean
}

const URL = 'WINDLASS_REDIS_URL'
const PASSWORD = 'WINDLASS_REDIS_PASSWORD'
const CA = 'WINDLASS_REDIS_CA_FILE'

const UNKNOWN_AUTHORITY =
  /SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF|UNABLE_TO_GET_ISSUER|self-signed certificate|unable to (verify|get)/i

/** Why there is no connection, in a sentence with what to do. Without an error the other side just closed it. */
export function redisFault(error: unknown, place: RedisPlace): string {
  const said = error === undefined ? undefined : saidBy(error)
  const ofSentinels = place.master !== undefined && (said === undefined || said.startsWith(ALL_SENTINELS))
  const who = whoIs(place, ofSentinels)
  const not = (why: string, toDo: string) => `Redis is not reachable: ${who} ${why}: ${toDo}`
  const reason = said?.replace(/^.*Last error: /s, '')
  if (reason === undefined || /^Connection is closed/.test(reason) || /ECONNRESET|EPIPE/.test(reason)) {
    return ofSentinels
      ? not('did not take a connection', `check that sentinels run there, and the addresses in ${URL}`)
      : not(
          'closed the connection',
          `check what runs there${place.tls ? '' : `, and write rediss:// in ${URL} if it wants TLS`}`,
        )
  }
  if (/NOAUTH/.test(reason)) return not('wants a password, and none is given', `set ${PASSWORD}`)
  if (/WRONGPASS|invalid password/i.test(reason)) {
    const whose = place.user === undefined ? 'the password' : `the password of user ${place.user}, or that user`
    return not(`refuses ${whose}`, `correct ${PASSWORD}, or user and password in ${URL}`)
  }
  if (/^NOPERM/.test(reason))
    return not(
      `does not let ${place.user ?? 'this user'} do all it must (${reason})`,
      `change the user's rights, or the user in ${URL}`,
    )
  if (/ENOTFOUND|EAI_AGAIN/.test(reason))
    return not(`has a host name that can not be resolved (${codeIn(reason)})`, `correct the host in ${URL}, or the DNS`)
  if (/ECONNREFUSED/.test(reason))
    return not('refuses connections (ECONNREFUSED)', `check that it runs, and host and port in ${URL}`)
  if (UNKNOWN_AUTHORITY.test(reason))
    return not(
      `has a certificate of an authority that is not trusted (${reason})`,
      `put the authority's certificate into the file that ${CA} names`,
    )
  if (/ALTNAME/i.test(reason))
    return not(`has a certificate for another name (${reason})`, `write a name that it holds in ${URL}`)
  if (/CERT_HAS_EXPIRED|certificate has expired/i.test(reason))
    return not('has a certificate that has expired', 'renew it')
  if (/EPROTO|ERR_SSL|SSL routines/i.test(reason))
    return not(
      `and this side do not agree on TLS (${/^[A-Z_]+|wrong version number/.exec(reason)?.[0] ?? reason})`,
      `write redis:// in ${URL} if it has none, and see ${CA}`,
    )
  if (/Unknown RESP type|Protocol error/i.test(reason))
    return not('answers, but is no Redis', `correct host and port in ${URL}`)
  if (/unknown command '?sentinel/i.test(reason))
    return not('answers, but is no sentinel', `write its address with redis:// in ${URL}, or those of the sentinels`)
  if (/timed? ?out|timeout/i.test(reason))
    return not(
      'does not answer in time',
      `check host and port in ${URL}, firewalls${place.tls ? ', whether it speaks TLS there' : ''}, and its log`,
    )
  return not(`can't be used (${reason})`, `see ${URL}, and the log of Redis`)
}

const ALL_SENTINELS = 'All sentinels'

function whoIs({ at, master }: RedisPlace, ofSentinels: boolean): string {
  if (master === undefined) return at
  return ofSentinels ? `the sentinel at ${at}` : `the primary of ${master}, as the sentinel at ${at} names it,`
}

/** With the code, and without what a Redis repeats of a command that it does not know: that may hold a password. */
function saidBy(error: unknown): string {
  const { message, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) }
  const plain = message.replace(/,? with args beginning with:.*$/s, '').trim()
  return code === undefined || plain.includes(code) ? plain : `${code}: ${plain}`
}

const codeIn = (text: string) => /ENOTFOUND|EAI_AGAIN/.exec(text)?.[0] ?? text
