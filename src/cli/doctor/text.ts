import type { Finding, Level } from './types.ts'

const MARK: Record<Level, string> = { ok: 'ok', warning: 'warning', problem: 'PROBLEM' }
const ORDER: readonly Level[] = ['problem', 'warning', 'ok']

/** A table for people: what is wrong comes first. */
export function findingsText(title: string, findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ area }) => area.length), 0)
  const rows = ORDER.flatMap((level) => findings.filter((finding) => finding.level === level)).flatMap(
    ({ area, level, what, toDo }) => [
      `  ${MARK[level].padEnd(8)} ${area.padEnd(width)}  ${what}`,
      ...(toDo === undefined ? [] : [`  ${' '.repeat(9 + width)}  → ${toDo}`]),
    ],
  )
  return `${[title, ...rows].join('\n')}\n`
}
