import type { Face } from '../exchange.ts'
import type { Cloud } from './cloud.ts'
import { ApiError, simulated } from './errors.ts'
import { gatewayOf } from './views.ts'

/** The metadata service as seen from the seeded server; to anybody else it answers 404. */
export function metadataService(cloud: () => Cloud): Face {
  return {
    label: (request) => `METADATA ${request.method} ${request.path}`,
    failure: (error) => ({ status: error.status, body: error.message, code: error.code }),
    simulated,
    rateLimited: () => ({ status: 429, body: 'too many requests', code: 'rate_limit_exceeded' }),
    answer: (request) => {
      const server = cloud().servers.find((candidate) => candidate.name === cloud().metadataServer)
      if (!server || request.method !== 'GET') throw new ApiError('not_found', 'not found')
      if (request.path === '/instance-id') return { status: 200, body: String(server.id) }
      if (request.path === '/hostname') return { status: 200, body: server.name }
      if (request.path !== '/private-networks') throw new ApiError('not_found', 'not found')
      return { status: 200, body: privateNetworks(cloud(), server.private_net) }
    },
  }
}

function privateNetworks(cloud: Cloud, attachments: Cloud['servers'][number]['private_net']): string {
  if (attachments.length === 0) return '[]\n'
  return attachments
    .map((net, i) => {
      const network = cloud.networks.find((candidate) => candidate.id === net.network)
      const range = network?.ip_range ?? '10.0.0.0/8'
      const subnet = network?.subnets[0]?.ip_range ?? range
      const lines = [
        `- ip: ${net.ip}`,
        net.alias_ips.length === 0 ? '  alias_ips: []' : '  alias_ips:',
        ...net.alias_ips.map((ip) => `  - ${ip}`),
        `  interface_num: ${i + 1}`,
        `  mac_address: ${net.mac_address}`,
        `  network_id: ${net.network}`,
        `  network_name: ${network?.name ?? ''}`,
        `  network: ${range}`,
        `  subnet: ${subnet}`,
        `  gateway: ${gatewayOf(range)}`,
      ]
      return `${lines.join('\n')}\n`
    })
    .join('')
}
