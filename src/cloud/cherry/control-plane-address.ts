import type { CherrySettings } from '../../config/types.ts'
import { transient } from '../../errors.ts'
import type { ControlPlaneAddress } from '../provider.ts'
import type { Addresses } from './addresses.ts'
import type { Address, AddressId } from './model.ts'
import { parseProviderId, providerIdOf } from './provider-id.ts'

/** Made by the replaced controller too, and known to its users: the API server at the floating IP, for everybody in the cluster. */
export const EXTERNAL_SERVICE = { namespace: 'kube-system', name: 'cloud-provider-cherry-kubernetes-external' } as const

export interface ControlPlaneAddressOptions {
  addresses: Addresses
  settings: Pick<CherrySettings, 'apiServerPort' | 'fipHealthCheckUseHostIp' | 'projectId'>
  /** `key=value`; a key alone stands for an empty value. */
  tag: string
}

export function createControlPlaneAddress(options: ControlPlaneAddressOptions): ControlPlaneAddress {
  const { addresses, settings, tag } = options
  return {
    port: settings.apiServerPort,
    checkMachine: settings.fipHealthCheckUseHostIp,
    async find(call) {
      const searched = `floating IP with tag ${spelledOut(tag)} in Cherry project ${settings.projectId}`
      const [found] = taggedWith(tag, await addresses.now(call))
      if (!found) return { searched }
      const { id, address: ip, target } = found
      return {
        searched,
        address: { id, ip, ...(target === undefined ? {} : { holder: [providerIdOf(target), String(target)] }) },
      }
    },
    async assign(id, providerId, call) {
      const parsed = parseProviderId(providerId)
      const done = parsed.kind === 'server' && (await addresses.assign(id as AddressId, parsed.id, call))
      if (!done)
        throw transient(`Address ${id} can't be assigned to ${providerId}: one of them is gone from Cherry Servers.`)
    },
  }
}

/** Those that have the tag of a setting, in the API's order. */
export function taggedWith(tag: string, addresses: readonly Address[]): Address[] {
  const [key, value] = pairOf(tag)
  return addresses.filter(({ tags }) => Object.hasOwn(tags, key) && tags[key] === value)
}

/** `role=` for `role`. */
export const spelledOut = (tag: string) => pairOf(tag).join('=')

function pairOf(tag: string): [key: string, value: string] {
  const [key = '', ...rest] = tag.split('=')
  return [key, rest.join('=')]
}
