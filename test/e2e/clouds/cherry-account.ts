import { createHash } from 'node:crypto'
import type { Json } from '../../apiserver/admin.ts'
import type { StateView } from '../../simulators/cherry/views.ts'
import type { Substitution } from '../form/substitute.ts'
import { externalService } from './cherry-cluster.ts'

/** In accounts `{kube-system uid}` and `{sha256 of NAMESPACE/NAME}` stand for what tags hold. */
export function fillPlaceholders(given: Json, clusterUid: string): Json {
  const text = JSON.stringify(given)
    .replaceAll('{kube-system uid}', clusterUid)
    .replace(/\{sha256 of ([^}]+)\}/g, (_, service: string) => hashOf(service))
  return JSON.parse(text)
}

/** Every Service, as NAMESPACE/NAME, that is mentioned anywhere inside. */
export function namedServices(inside: Json): string[] {
  if (Array.isArray(inside)) return inside.flatMap(namedServices)
  if (!inside || typeof inside !== 'object') return []
  const below = Object.values(inside).flatMap(namedServices)
  if (inside.kind !== 'Service') return below
  const { namespace = 'default', name } = inside.metadata ?? inside
  return name ? [`${namespace}/${name}`, ...below] : below
}

/** The account by hostnames and Services: no ids; addresses that the cloud chose become substitutions. */
export function normalAccount(
  { projects, servers, ips }: StateView,
  seeded: Json,
  services: string[],
  clusterUid: string,
): { account: Json; substitutions: Substitution[] } {
  const byHash = new Map([...services, `kube-system/${externalService}`].map((name) => [hashOf(name), name]))
  const substitutions: Substitution[] = [[clusterUid, '{kube-system uid}']]
  for (const [hash, service] of byHash) substitutions.push([hash, `{sha256 of ${service}}`])

  const given = new Set((seeded.ips ?? []).map((ip: Json) => ip.address))
  const hostnames = new Map(servers.map(({ id, hostname }) => [id, hostname]))
  const addresses = new Map(ips.map(({ id, address }) => [id, address]))
  const made = new Map<string, number>()
  const floating = ips
    .filter(({ type }) => type === 'floating-ip')
    .map((ip) => {
      const service = byHash.get(ip.tags.service ?? '')
      if (service && !given.has(ip.address)) {
        const n = (made.get(service) ?? 0) + 1
        made.set(service, n)
        substitutions.push([ip.address, n === 1 ? `{ip of ${service}}` : `{ip ${n} of ${service}}`])
      }
      return { ip, sortedBy: service ?? ip.address }
    })
    .sort((a, b) => a.sortedBy.localeCompare(b.sortedBy))
  return {
    substitutions,
    account: {
      projects: projects.map(({ id, name, bgp }) => ({ id, name, bgp })),
      servers: Object.fromEntries(
        servers.map(({ hostname, bgp, state, tags, power }) => [
          hostname,
          { bgp: bgp.enabled, state, tags, power: power === 'on' ? undefined : power },
        ]),
      ),
      ips: floating.map(({ ip }) => ({
        address: ip.address,
        region: ip.region,
        tags: ip.tags,
        targeted_to: ip.target_server_id === 0 ? undefined : hostnames.get(ip.target_server_id),
        routed_to: ip.route_ip_id ? addresses.get(ip.route_ip_id) : undefined,
        ptr_record: ip.ptr_record || undefined,
        a_record: ip.a_record || undefined,
      })),
    },
  }
}

function hashOf(service: string): string {
  return createHash('sha256').update(service).digest('base64')
}
