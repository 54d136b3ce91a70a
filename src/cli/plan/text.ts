import type { ClusterPlan, PlanItem } from './types.ts'

/** A plan for people: what changes, what is wrong, and how much is as it should be. */
export function planText({ cluster, items }: ClusterPlan): string {
  const changing = items.filter(({ changes }) => changes.length > 0).length
  const faulty = items.filter(({ faults }) => faults.length > 0).length
  const quiet = items.filter((item) => item.skipped === undefined && isQuiet(item)).length
  const shown = items.filter((item) => item.skipped !== undefined || !isQuiet(item)).map(itemText)
  const summary = `Cluster ${cluster}: ${changing} of ${count(items.length, 'object')} would change${faulty > 0 ? `, ${faulty} can't be brought in order` : ''}.`
  const rest = quiet > 0 ? [`${count(quiet, 'object')} as they should be.`] : []
  return `${[summary, ...shown, ...rest].join('\n\n')}\n`
}

const isQuiet = ({ changes, notes, faults }: PlanItem) => changes.length + notes.length + faults.length === 0

function itemText({ subject, changes, notes, faults, skipped }: PlanItem): string {
  return [
    skipped === undefined ? subject : `${subject}: left alone, ${skipped}`,
    ...changes.map(({ at, summary }) => `  ${at === 'cloud' ? 'cloud' : 'kubernetes'}: ${summary}`),
    ...notes.map(
      ({ type, reason, message, node }) =>
        `  ${type === 'Warning' ? 'warning' : 'note'}: ${node === undefined ? '' : `node ${node}: `}${message} (${reason})`,
    ),
    ...faults.map((fault) => `  wrong: ${fault}`),
  ].join('\n')
}

const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
