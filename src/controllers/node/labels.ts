import type { Instance } from '../../cloud/provider.ts'

/** Each fact of a machine stands under a stable key and under the beta key that older components read. */
const TOPOLOGY_LABELS = [
  { fact: 'instanceType', stable: 'node.kubernetes.io/instance-type', beta: 'beta.kubernetes.io/instance-type' },
  { fact: 'zone', stable: 'topology.kubernetes.io/zone', beta: 'failure-domain.beta.kubernetes.io/zone' },
  { fact: 'region', stable: 'topology.kubernetes.io/region', beta: 'failure-domain.beta.kubernetes.io/region' },
] as const satisfies readonly { fact: keyof Instance; stable: string; beta: string }[]

type Labels = Readonly<Record<string, string>>

/** Labels that a node gets at its initialisation: the facts overwrite, a cloud's additional labels fill in. */
export function initialLabels(instance: Instance, present: Labels): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const { fact, stable, beta } of TOPOLOGY_LABELS) {
    const value = labelValue(instance[fact] ?? '')
    if (value !== '') Object.assign(labels, { [stable]: value, [beta]: value })
  }
  for (const [key, value] of Object.entries(instance.additionalLabels))
    if (!isReserved(key) && present[key] === undefined) labels[key] = labelValue(value)
  return changed(labels, present)
}

/** Labels that an initialised node is kept at: where the beta key exists, its value is the truth. */
export function keptLabels(present: Labels): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const { stable, beta } of TOPOLOGY_LABELS) {
    const truth = present[beta]
    if (truth !== undefined) labels[stable] = truth
  }
  return changed(labels, present)
}

/** The nearest value that the API server accepts: catalogue names may hold blanks, be too long, or end in a dash. */
export function labelValue(text: string): string {
  return text
    .replace(/ /g, '-')
    .replace(/[^A-Za-z0-9_.-]/g, '')
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
}

/** A cloud may not set labels in Kubernetes' own name spaces. */
function isReserved(key: string): boolean {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
  return ['kubernetes.io', 'k8s.io'].some((reserved) => domain === reserved || domain.endsWith(`.${reserved}`))
}

function changed(wanted: Record<string, string>, present: Labels): Record<string, string> {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => present[key] !== value))
}
