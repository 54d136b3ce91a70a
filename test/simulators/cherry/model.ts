/** The account's resources, with ids and slugs in place of what the API shows inside of each other. */
export type Tags = Record<string, string>

export interface Region {
  id: number
  name: string
  slug: string
  region_iso_2: string
  bgp: { hosts: string[]; asn: number }
}

export interface Project {
  id: number
  name: string
  bgp: { enabled: boolean; local_asn: number }
}

/**
 * What answers at a server's API server port on its loopback addresses: ok; a status that is no success; refuse: no
 * connection; hang: a connection without an answer.
 */
export type ApiServer = 'ok' | 'refuse' | 'hang' | number

export interface Server {
  id: number
  project: number
  name: string
  hostname: string
  plan: string
  /** slug */
  region: string
  state: string
  power: 'on' | 'off'
  bgp: { enabled: boolean }
  tags: Tags
  /** undefined: no control plane node */
  apiserver?: ApiServer
}

export interface Address {
  /** UUID */
  id: string
  project: number
  address: string
  cidr: string
  /** primary-ip, private-ip, floating-ip, subnet, … */
  type: string
  /** slug */
  region: string
  /** whose it is; 0: nobody's, as every floating IP */
  owner: number
  /** to which server a floating IP goes; 0: none */
  target: number
  tags: Tags
  ptr_record: string
  a_record: string
  ddos_scrubbing: boolean
  /** lists leave it out until then, ms since epoch */
  hiddenUntil: number
  /** it is deleted, and lists show it until then all the same, ms since epoch */
  lingersUntil?: number
}

/** Everything that the API shows, so that a read can be of the past. */
export interface Data {
  projects: Project[]
  servers: Server[]
  addresses: Address[]
}

export interface Settings {
  /** of the control plane nodes' API servers; one that is free if left out */
  apiserver_port?: number
  limits: { floating_ips: number }
}

export interface Options {
  /** most entries of one answer; 0: all */
  page_size: number
  /** requests per second; 0: no limit */
  requests_per_second: number
  /** whether a 429 says when to come back */
  retry_after: boolean
  /** so long reads are behind writes */
  lag_ms: number
  /** so long a deleted address stays in lists, tags included */
  deleted_stays_ms: number
  /** how no tags look */
  no_tags: 'object' | 'array' | 'null' | 'absent'
  /** how an address without a target looks */
  no_target: 'zero' | 'empty' | 'null' | 'absent'
  /** how ids of servers and projects look */
  ids: 'number' | 'text'
  /** ASN that a project gets with BGP */
  local_asn: number
}

export const defaultOptions: Options = {
  page_size: 0,
  requests_per_second: 0,
  retry_after: false,
  lag_ms: 0,
  deleted_stays_ms: 0,
  no_tags: 'object',
  no_target: 'zero',
  ids: 'number',
  local_asn: 65432,
}
