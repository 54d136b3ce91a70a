declare const brand: unique symbol

/** Number of a dedicated server. Not to be mixed up with ids of cloud servers, which come from the same range. */
export type RobotServerNumber = number & { readonly [brand]: 'robot-server' }

export interface RobotServer {
  number: RobotServerNumber
  name: string
  /** Main IPv4, if it has one. */
  ip?: string
  /** IPv6 network without prefix length: `2a01:f48:111:4221::`. */
  ipv6Net?: string
  product: string
  /** As Robot writes it: `FSN1-DC14`. */
  dc: string
}
