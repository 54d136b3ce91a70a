import type { Region } from './model.ts'

interface Place {
  region: Region
  /** floating IPs are taken from here, the first address included */
  floatingIps: string
}

/** The API names hosts in an order of its own, which is not that of their addresses. */
const places: readonly Place[] = [
  place(1, 'Siauliai', 'LT-Siauliai', ['188.214.132.44', '188.214.132.43'], '5.199.171'),
  place(2, 'Amsterdam', 'NL-Amsterdam', ['46.166.166.3', '46.166.166.2'], '46.166.170'),
  place(3, 'Frankfurt', 'DE-Frankfurt', ['198.51.100.9', '198.51.100.10'], '203.0.113'),
  place(4, 'Chicago', 'US-Chicago', ['198.51.100.20'], '198.18.4'),
]

export function regions(): Region[] {
  return places.map(({ region }) => structuredClone(region))
}

/** The first three numbers of the region's floating IPs. */
export function floatingIpsOf(slug: string): string {
  return places.find(({ region }) => region.slug === slug)?.floatingIps ?? '198.18.0'
}

function place(id: number, name: string, slug: string, hosts: string[], floatingIps: string): Place {
  return { region: { id, name, slug, region_iso_2: slug.slice(0, 2), bgp: { hosts, asn: 16125 } }, floatingIps }
}
