import type { ClusterSettings, Secret } from '../config/types.ts'

type Clouds = Pick<ClusterSettings, 'clouds'>

/** All that a cluster's clouds are asked with. */
export function cloudSecrets({ clouds: { hcloud, cherry } }: Clouds): Secret[] {
  const secrets = [hcloud?.token, hcloud?.robot?.user, hcloud?.robot?.password, cherry?.apiKey]
  return secrets.filter((secret) => secret !== undefined)
}

/** Secrets of clouds whose file is wrong now, in sentences: the value from before is still in use, and a restart would not find it. */
export function secretFaults(settings: Clouds & Pick<ClusterSettings, 'id'>): string[] {
  return cloudSecrets(settings).flatMap((secret) =>
    secret.fault === undefined
      ? []
      : [
          `Cluster ${settings.id}: the file of ${secret.name} ${secret.fault}; put it right, the value from before is still in use`,
        ],
  )
}
