import type { LoadBalancerType, Location } from './model.ts'

const places: [name: string, zone: string, country: string, city: string][] = [
  ['fsn1', 'eu-central', 'DE', 'Falkenstein'],
  ['nbg1', 'eu-central', 'DE', 'Nuremberg'],
  ['hel1', 'eu-central', 'FI', 'Helsinki'],
  ['ash', 'us-east', 'US', 'Ashburn, VA'],
  ['hil', 'us-west', 'US', 'Hillsboro, OR'],
  ['sin', 'ap-southeast', 'SG', 'Singapore'],
]

const sizes: [name: string, connections: number, services: number, targets: number, certificates: number][] = [
  ['lb11', 10_000, 5, 25, 10],
  ['lb21', 20_000, 15, 75, 25],
  ['lb31', 40_000, 30, 150, 50],
]

export function locations(): Location[] {
  return places.map(([name, network_zone, country, city], i) => location(i + 1, { name, network_zone, country, city }))
}

export function location(id: number, given: Partial<Location> & { name: string }): Location {
  return {
    id,
    description: `${given.name} virtual park`,
    country: 'DE',
    city: given.name,
    latitude: 50,
    longitude: 12,
    network_zone: 'eu-central',
    ...given,
  }
}

export function loadBalancerTypes(): LoadBalancerType[] {
  return sizes.map(([name, max_connections, max_services, max_targets, max_assigned_certificates], i) =>
    loadBalancerType(i + 1, { name, max_connections, max_services, max_targets, max_assigned_certificates }),
  )
}

export function loadBalancerType(id: number, given: Partial<LoadBalancerType> & { name: string }): LoadBalancerType {
  return {
    id,
    description: given.name.toUpperCase(),
    max_connections: 10_000,
    max_services: 5,
    max_targets: 25,
    max_assigned_certificates: 10,
    deprecated: given.deprecation?.unavailable_after ?? null,
    deprecation: null,
    prices: [],
    ...given,
  }
}

export function serverType(name: string): { id: number; name: string } & Record<string, unknown> {
  const id = [...name].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 10_000, 7)
  return {
    id,
    name,
    description: name.toUpperCase(),
    cores: 2,
    memory: 4,
    disk: 40,
    storage_type: 'local',
    cpu_type: 'shared',
    architecture: name.startsWith('cax') ? 'arm' : 'x86',
    deprecated: false,
    deprecation: null,
    prices: [],
  }
}
