/** Ids of the API are numbers, but for addresses: kinds of their own, so that one is never taken for another. */
export type ServerId = number & { readonly kind: 'cherry server' }
export type AddressId = string & { readonly kind: 'cherry address' }

/** A server as far as it matters here. What is undefined was not in the answer: lists and single reads differ. */
export interface Server {
  id: ServerId
  hostname: string
  state: string
  plan: string
  region: string
  /** In the API's order. */
  addresses?: { address: string; type: string }[]
  bgpEnabled?: boolean
  tags?: Record<string, string>
  /** Addresses and ASN of the region's routers, in the API's order. */
  routers?: { hosts: string[]; asn: number }
}

/** An address of the project, floating or not. */
export interface Address {
  id: AddressId
  /** Plain, without prefix length. */
  address: string
  type: string
  /** Empty when the API does not say. */
  region: string
  tags: Record<string, string>
  /** The server that it is assigned to. */
  target?: ServerId
}

export interface Project {
  name: string
  bgpEnabled: boolean
  /** 0 when the API does not say. */
  localAsn: number
}
