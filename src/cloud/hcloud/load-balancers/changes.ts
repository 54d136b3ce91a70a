import type { Change } from '../../provider.ts'
import type { Algorithm, Listener, LoadBalancerType, Target } from '../model.ts'

/** One step at the API. Every kind can be repeated: done twice is done once. */
export type LoadBalancerChange = Change &
  (
    | { kind: 'create-certificate'; name: string; domains: string[]; labels: Record<string, string> }
    | { kind: 'create-load-balancer' }
    | { kind: 'update-metadata'; name?: string; labels?: Record<string, string> }
    | { kind: 'change-dns-ptr'; ip: string; dnsPtr: string | null }
    | { kind: 'change-algorithm'; algorithm: Algorithm }
    | { kind: 'change-type'; type: LoadBalancerType }
    | { kind: 'attach'; network: number; ip?: string; ipRange?: string }
    | { kind: 'detach'; network: number }
    | { kind: 'set-public-interface'; enabled: boolean }
    | { kind: 'add-listener'; listener: Listener }
    | { kind: 'update-listener'; listener: Listener; observed: Listener }
    | { kind: 'delete-listener'; listener: Listener }
    | { kind: 'add-target'; target: KnownTarget; node: string }
    | { kind: 'remove-target'; target: KnownTarget }
    | { kind: 'delete-load-balancer'; id: number }
    | { kind: 'release-load-balancer'; id: number; labels: Record<string, string>; targets: KnownTarget[] }
    | { kind: 'delete-certificate'; id: number; name: string }
  )

export type KnownTarget = Exclude<Target, { type: 'other' }>
