import { type Parsed, parseDnsLabel } from './grammar.ts'

/** How an address is announced inside the cluster: what `CHERRY_LOAD_BALANCER` comes to. */
export type CherryLoadBalancer =
  | { kind: 'kube-vip' }
  | {
      kind: 'metallb'
      namespace: string
      bgpPeerMode: BgpPeerMode
      /** What stands where a namespace may have been meant and counts for nothing. */
      idle?: string
    }
  /** An address, BGP and annotations only. The Service annotation that takes the address, if not the default. */
  | { kind: 'empty'; ipAnnotation?: string }

export type BgpPeerMode = 'native' | 'frr' | 'none'

/** `kube-vip://`, `metallb:///<namespace>?bgp-peer-mode=native|frr|none`, `empty://?ip-annotation=<key>`. */
export function parseCherryLoadBalancer(text: string): Parsed<CherryLoadBalancer> {
  const match = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/i.exec(text)
  const [, scheme = '', host = '', path = '', query = ''] = match ?? []
  if (match === null || /%(?![0-9a-f]{2})/i.test(host + path)) return { fault: `is not a URL, ${RIGHT}` }
  const parameters = new URLSearchParams(query)
  switch (scheme.toLowerCase()) {
    case 'kube-vip':
      return { value: { kind: 'kube-vip' } }
    case 'metallb':
      return metallb(host, path, parameters.get('bgp-peer-mode') ?? '')
    case 'empty':
      return { value: { kind: 'empty', ipAnnotation: parameters.get('ip-annotation') || undefined } }
    default:
      return { fault: `has an unknown scheme, ${RIGHT}` }
  }
}

const RIGHT = 'write kube-vip://, metallb:///<namespace>?bgp-peer-mode=<native, frr or none> or empty://'
const DEFAULT_NAMESPACE = 'metallb-system'

function metallb(host: string, path: string, mode: string): Parsed<CherryLoadBalancer> {
  // The replaced controller took no notice of what stands behind two slashes or none, and its users' objects are in the default namespace.
  const rooted = path.startsWith('/')
  const idle = host || (rooted ? '' : path)
  const namespace = (rooted ? path.slice(1) : '').replace(/\/$/, '') || DEFAULT_NAMESPACE
  if ('fault' in parseDnsLabel(namespace)) {
    return { fault: `has a path that is not one namespace, write for example metallb:///${DEFAULT_NAMESPACE}` }
  }
  const bgpPeerMode = mode === '' ? 'native' : MODES.find((known) => known === mode)
  if (bgpPeerMode === undefined) return { fault: 'has an unknown bgp-peer-mode, write native, frr or none' }
  return {
    value: { kind: 'metallb', namespace, bgpPeerMode, ...(idle === '' || idle === namespace ? {} : { idle }) },
  }
}

const MODES: readonly BgpPeerMode[] = ['native', 'frr', 'none']
