/** `ok`: looked at and good. `warning`: may be meant so, or could not be looked at from here. `problem`: Windlass can't do its work. */
export type Level = 'ok' | 'warning' | 'problem'

export interface Finding {
  /** What was looked at: `cloud`, `redis`, `rights`, … */
  area: string
  level: Level
  what: string
  /** Missing where there is nothing to do. */
  toDo?: string
}

/** What `windlass doctor --json` prints. Fields are only ever added; another meaning of one means another `v`. */
export interface DoctorDocument {
  v: 1
  /** Of what all clusters share. */
  findings: Finding[]
  clusters: { cluster: string; findings: Finding[] }[]
}
