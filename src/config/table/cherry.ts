import { parseCherryLoadBalancer } from '../cherry-load-balancer.ts'
import {
  integerBetween,
  isQualifiedName,
  type Parser,
  parseBool,
  parseHeaderText,
  parseHttpUrl,
  parseText,
} from '../grammar.ts'
import { parseSelector } from '../selector.ts'
import { optional, secret, setting } from '../setting.ts'

const commands = ['worker', 'all', 'plan', 'doctor'] as const
const TEXT = { parse: parseText, form: 'text', commands }

const parseAnnotation: Parser<string> = (text) =>
  isQualifiedName(text) ? { value: text } : { fault: 'is no key that an annotation can have' }

/** Without the place for a number all peers share one key: right for all but their addresses. */
const parsePeerAnnotation: Parser<string> = (text) =>
  isQualifiedName(text.replace('{{n}}', '0')) ? { value: text } : { fault: 'is no key that an annotation can have' }

const PEER = { parse: parsePeerAnnotation, form: 'annotation key, with `{{n}}` for the peer’s number', commands }

export const CHERRY = {
  cloudConfig: optional({
    env: 'CHERRY_CLOUD_CONFIG',
    flag: 'cloud-config',
    shared: true,
    parse: parseText,
    form: 'path',
    ofOneCluster: true,
    commands,
    doc: 'JSON file with the settings below, as the replaced controller takes it. Not read for Hetzner alone.',
  }),
  apiKey: secret({
    env: 'CHERRY_API_KEY',
    jsonKey: 'apiKey',
    parse: parseHeaderText,
    ofOneCluster: true,
    commands,
    required: commands,
    requiredFor: 'Cherry Servers',
    doc: 'API key. A file is read again when it changes.',
  }),
  projectId: optional({
    env: 'CHERRY_PROJECT_ID',
    jsonKey: 'projectId',
    jsonType: 'number',
    parse: integerBetween(1, 2 ** 31 - 1),
    form: 'whole number',
    ofOneCluster: true,
    commands,
    required: commands,
    requiredFor: 'Cherry Servers',
    doc: 'The project that servers and addresses are in.',
  }),
  apiUrl: setting({
    env: 'CHERRY_API_URL',
    jsonKey: 'base-url',
    parse: parseHttpUrl,
    form: 'URL',
    default: 'https://api.cherryservers.com/v1',
    commands,
    doc: 'Address of the API, version included.',
  }),
  regionName: optional({
    ...TEXT,
    env: 'CHERRY_REGION_NAME',
    jsonKey: 'region',
    doc: 'Region in which floating IPs are made, if the Service’s annotation names no other.',
  }),
  loadBalancer: optional({
    env: 'CHERRY_LOAD_BALANCER',
    jsonKey: 'loadbalancer',
    parse: (text) => {
      const parsed = parseCherryLoadBalancer(text)
      return 'fault' in parsed ? parsed : { value: text }
    },
    form: '`kube-vip://`, `metallb:///<namespace>?bgp-peer-mode=<native, frr or none>` or `empty://?ip-annotation=<key>`',
    defaultNote: 'no load balancers',
    commands,
    doc: 'What announces addresses inside the cluster.',
  }),
  annotationLocalAsn: setting({
    ...PEER,
    env: 'CHERRY_ANNOTATION_LOCAL_ASN',
    jsonKey: 'annotationLocalASN',
    default: 'cherryservers.com/bgp-peers-{{n}}-node-asn',
    doc: 'Node annotation with the node’s ASN, by peer.',
  }),
  annotationPeerAsn: setting({
    ...PEER,
    env: 'CHERRY_ANNOTATION_PEER_ASN',
    jsonKey: 'annotationPeerASN',
    default: 'cherryservers.com/bgp-peers-{{n}}-peer-asn',
    doc: 'Node annotation with the peer’s ASN.',
  }),
  annotationPeerIp: setting({
    ...PEER,
    env: 'CHERRY_ANNOTATION_PEER_IP',
    jsonKey: 'annotationPeerIP',
    default: 'cherryservers.com/bgp-peers-{{n}}-peer-ip',
    doc: 'Node annotation with the peer’s address.',
  }),
  annotationSrcIp: setting({
    ...PEER,
    env: 'CHERRY_ANNOTATION_SRC_IP',
    jsonKey: 'annotationSrcIP',
    default: 'cherryservers.com/bgp-peers-{{n}}-src-ip',
    doc: 'Node annotation with the node’s own address towards the peer.',
  }),
  annotationMultiHop: setting({
    ...PEER,
    env: 'CHERRY_ANNOTATION_MULTI_HOP',
    jsonKey: 'annotationMultiHop',
    default: 'cherryservers.com/bgp-peers-{{n}}-peer-multi-hop',
    doc: 'Node annotation that says that the peer is some hops away.',
  }),
  annotationFipRegion: setting({
    env: 'CHERRY_ANNOTATION_FIP_REGION',
    jsonKey: 'annotationFIPRegion',
    parse: parseAnnotation,
    form: 'annotation key',
    default: 'cherryservers.com/fip-region',
    commands,
    doc: 'Service annotation that names the region of its floating IP.',
  }),
  fipTag: optional({
    env: 'CHERRY_FIP_TAG',
    jsonKey: 'fipTag',
    parse: (text) =>
      text.startsWith('=') ? { fault: 'has no key before the equals sign, write key=value' } : { value: text },
    form: '`key=value`, or a key whose value is empty',
    defaultNote: 'none is kept',
    commands,
    doc: 'Tag of the floating IP that is kept on a healthy control-plane node.',
  }),
  apiServerPort: setting({
    env: 'CHERRY_API_SERVER_PORT',
    jsonKey: 'apiServerPort',
    jsonType: 'number',
    parse: integerBetween(0, 65535),
    form: 'whole number',
    default: '0',
    commands,
    doc: 'Port of the API server at that floating IP. `0` is the port of the API server itself.',
  }),
  bgpNodeSelector: optional({
    env: 'CHERRY_BGP_NODE_SELECTOR',
    jsonKey: 'bgpNodeSelector',
    parse: (text) => {
      const parsed = parseSelector(text)
      return 'fault' in parsed ? parsed : { value: text }
    },
    form: 'label selector',
    defaultNote: 'all nodes',
    commands,
    doc: 'Nodes that announce addresses.',
  }),
  fipHealthCheckUseHostIp: setting({
    env: 'CHERRY_FIP_HEALTH_CHECK_USE_HOST_IP',
    jsonKey: 'fipHealthCheckUseHostIP',
    jsonType: 'boolean',
    parse: parseBool,
    form: '`true` or `false`',
    default: 'false',
    commands,
    doc: 'Check a control-plane node at its own address in place of the floating IP.',
  }),
}
