/** Something wrong with a setting. */
export interface Fault {
  /** As its user knows it: `HCLOUD_TOKEN`, `--listen`, `hcloud.network of cluster prod in /etc/clusters.yaml`. */
  name: string
  /** A sentence without the name: what was given (never of a secret) and what would be right. */
  message: string
}

/** Something that works, and that its user may want to know. */
export interface Notice extends Fault {
  /** Nothing is lost: it stands there for what is replaced. */
  harmless?: boolean
}

/** What was given, fit for a message: short, on one line, without passwords in URLs. */
export function quoted(text: string): string {
  const masked = text.replace(/\/\/[^/@]*@/g, '//***@')
  return JSON.stringify(masked.length > LONGEST ? `${masked.slice(0, LONGEST)}…` : masked)
}

/** Long enough for paths. */
const LONGEST = 300

export function formatFaults(title: string, faults: readonly Fault[]): string {
  return [title, ...faults.map(({ name, message }) => `  ${name} ${message}`)].join('\n')
}
