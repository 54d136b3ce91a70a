import type { Json } from '../../apiserver/admin.ts'

/**
 * What the controller keeps beside Nodes and Services, keyed as `watchedObjects` does: sets are sorted, what equals the
 * default is left out, the port of the API server has a name.
 */
export function normalObjects(watched: Record<string, Json>, apiPort: number): Record<string, Json> {
  const portName = (port: Json) => (port === apiPort ? '{api port}' : port)
  return Object.fromEntries(
    Object.entries(watched).map(([key, object]) => {
      const kind = key.split('/')[0] ?? ''
      if (kind === 'ServiceSpec') return [key, normalServiceSpec(object, portName)]
      if (kind === 'Endpoints') return [key, normalEndpoints(object, portName)]
      return [key, normalMetallb(kind, object)]
    }),
  )
}

const defaults: Readonly<Record<string, Json>> = {
  IPAddressPool: { avoidBuggyIPs: false },
  BGPPeer: { keepaliveTime: '0s', disableMP: false, dualStackAddressFamily: false, ebgpMultiHop: false },
  BGPAdvertisement: { aggregationLength: 32, aggregationLengthV6: 128 },
}

const sets = ['ipAddressPools', 'addresses']

function normalMetallb(kind: string, { metadata, spec }: Json): Json {
  const shown: Json = {}
  for (const [field, value] of Object.entries(spec)) {
    if (value !== defaults[kind]?.[field]) shown[field] = sets.includes(field) ? [...(value as string[])].sort() : value
  }
  const { labels, annotations, deletionTimestamp } = metadata
  return { labels, annotations, deleting: deletionTimestamp ? true : undefined, spec: shown }
}

function normalServiceSpec({ spec }: Json, portName: (port: Json) => Json): Json {
  const { loadBalancerIP, selector, loadBalancerClass, externalTrafficPolicy, ports } = spec
  return {
    loadBalancerIP,
    selector,
    loadBalancerClass,
    externalTrafficPolicy,
    ports: ports.map(({ name, protocol, port, targetPort }: Json) => ({
      name,
      protocol,
      port: portName(port),
      targetPort: portName(targetPort),
    })),
  }
}

function normalEndpoints({ subsets = [] }: Json, portName: (port: Json) => Json): Json {
  return {
    subsets: subsets.map(({ addresses = [], ports = [] }: Json) => ({
      addresses: addresses.map(({ ip, nodeName, hostname }: Json) => ({ ip, nodeName, hostname })),
      ports: ports.map(({ name, port, protocol }: Json) => ({ name, port: portName(port), protocol })),
    })),
  }
}
