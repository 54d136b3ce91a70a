import { readFile } from '../config/read-file.ts'
import type { ClusterSettings } from '../config/types.ts'
import { type Forwarder, startForwarder } from '../forwarder/forwarder.ts'
import { kubernetesSource } from '../forwarder/source.ts'
import { connect } from '../kubernetes/connection.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Role } from './role.ts'

export interface ForwarderRole extends Role {
  readonly forwarder: Forwarder
}

export interface ForwarderTarget {
  serverUrl: string
  /** PEM file of authorities of the server. */
  caFile?: string
}

/** Watches one cluster and reports to the server. */
export async function startForwarderRole(
  cluster: ClusterSettings,
  { serverUrl, caFile }: ForwarderTarget,
  roleLog: Logger,
): Promise<ForwarderRole> {
  const log = roleLog.child({ cluster: cluster.id })
  const connection = await connect(cluster.kubernetes, log)
  const forwarder = startForwarder({
    cluster: cluster.id,
    keys: cluster.webhookKeys,
    serverUrl,
    source: kubernetesSource(connection, log),
    log,
    extraCa: caFile === undefined ? undefined : readFile(caFile),
  })
  let stopping: Promise<void> | undefined
  return { forwarder, stop: () => (stopping ??= forwarder.stop().then(() => connection.close())) }
}
