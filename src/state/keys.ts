/*
 * The version is part of every name: N and N−1 of Windlass run side by side and must not read each other's forms. The braces make one
 * hash tag of everything, as the queue's keys have it.
 */

/** Name of what the state keeps for a cluster. */
export const stateKey = (prefix: string, cluster: string, what: string) => `{${prefix}}:v1:state:${cluster}:${what}`

/** Name of what the state keeps for the whole Redis. */
export const globalKey = (prefix: string, what: string) => `{${prefix}}:v1:global:${what}`
