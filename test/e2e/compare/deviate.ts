import type { Json } from '../../apiserver/admin.ts'
import type { Change, Deviation, Result } from '../case.ts'

/** The lists of deviations that are accepted: one for each way through the `either`s. */
export function variants(deviations: Deviation[] = []): Deviation[][] {
  return deviations.reduce<Deviation[][]>(
    (lists, deviation) => lists.flatMap((list) => (deviation.either ?? [deviation]).map((one) => [...list, one])),
    [[]],
  )
}

/** The expectation with the deviations' changes made, in their order. Events are left alone. */
export function deviate(expect: Result, deviations: Deviation[]): Result {
  const result = structuredClone(expect)
  for (const deviation of deviations) {
    for (const change of changesOf(deviation)) apply(result, change)
  }
  return result
}

function changesOf(deviation: Deviation): Change[] {
  if (deviation.changes) return deviation.changes
  return deviation.at ? [{ ...deviation, at: deviation.at }] : []
}

function apply(result: Json, change: Change): void {
  let home = result
  change.at.slice(0, -1).forEach((key, i) => {
    home[key] ??= typeof change.at[i + 1] === 'number' ? [] : {}
    home = home[key]
  })
  const last = change.at.at(-1) as string | number
  if (change.ignore) home[last] = { $ignore: true }
  else if (change.subset) {
    home[last] = {
      $subset: home[last] ?? [],
      required: change.required ?? [],
      ...(change.loose && { loose: change.loose }),
    }
  } else if (change.any) home[last] = { $any: change.any }
  else if (!change.absent) home[last] = change.value
  else if (Array.isArray(home)) home.splice(Number(last), 1)
  else delete home[last]
}
