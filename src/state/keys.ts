/**
 * Name of what the state keeps for a cluster. The version is part of it: N and N−1 of Windlass run side by side and must not read each
 * other's forms. Braces keep a cluster's keys on one shard.
 */
export const stateKey = (prefix: string, cluster: string, what: string) => `${prefix}:state:v1:{${cluster}}:${what}`

/** Name of what the state keeps for the whole Redis. */
export const globalKey = (prefix: string, what: string) => `${prefix}:state:v1:${what}`
