import type { ClusterSettings, Secret } from '../config/types.ts'

/** Secrets of clouds whose file is wrong now, in sentences: the value from before is still in use, and a restart would not find it. */
export function secretFaults({ id, clouds: { hcloud, cherry } }: Pick<ClusterSettings, 'id' | 'clouds'>): string[] {
  const secrets: (Secret | undefined)[] = [hcloud?.token, hcloud?.robot?.user, hcloud?.robot?.password, cherry?.apiKey]
  return secrets.flatMap((secret) =>
    secret?.fault === undefined
      ? []
      : [
          `Cluster ${id}: the file of ${secret.name} ${secret.fault}; put it right, the value from before is still in use`,
        ],
  )
}
