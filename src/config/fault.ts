/** Something wrong with a setting. */
export interface Fault {
  /** As its user knows it: `HCLOUD_TOKEN`, `--listen`, `hcloud.network of cluster prod in /etc/clusters.yaml`. */
  name: string
  /** A sentence without the name: what was given (never of a secret) and what would be right. */
  message: string
  /** Nothing was given, or a file that may have it could not be read. */
  about?: 'missing' | 'unread file'
}

/** Something that works, and that its user may want to know. */
export type Notice = Fault

/** What was given, fit for a message: short, on one line, without passwords in URLs. */
export function quoted(text: string): string {
  const masked = text.replace(/\/\/[^/@]*@/g, '//***@')
  return JSON.stringify(masked.length > LONGEST ? `${masked.slice(0, LONGEST)}…` : masked)
}

/** Long enough for paths. */
const LONGEST = 300

/** What a file that nobody could read may say is not called missing. */
export function withoutGuesses(faults: readonly Fault[]): Fault[] {
  const unread = faults.some(({ about }) => about === 'unread file')
  return faults.filter(({ about }) => !(unread && about === 'missing'))
}

export function formatFaults(title: string, faults: readonly Fault[]): string {
  return [title, ...faults.map(({ name, message }) => `  ${name} ${message}`)].join('\n')
}
