import { readFileSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import t from 'tap'
import { parse } from 'yaml'
import { dashboardQueries } from '../../infra/dashboard.ts'
import { forwarderMetrics } from '../../src/cli/forwarder-metrics.ts'
import type { ForwarderStats } from '../../src/forwarder/forwarder.ts'
import { createMetrics, METRICS } from '../../src/telemetry/metrics.ts'

const STATS: ForwarderStats = {
  ...{ ready: true, objects: 1, pending: 0, lagMs: 0, sent: 1, acknowledged: 1, refused: 0, requests: 1, retries: 0 },
  ...{ filtered: 0, relists: 0, watchRestarts: 0, lastAcknowledgedMs: 0, lastSignOfLifeMs: 0, epoch: 'e' },
  trouble: undefined,
}

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}

const { groups } = parse(readFileSync(new URL('../../infra/alerts.yaml', import.meta.url), 'utf8')) as {
  groups: { rules: Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)

/** Labels of every metric that a role has, by the names under which Prometheus keeps them. */
function known(): Map<string, readonly string[]> {
  const names = new Map<string, readonly string[]>()
  for (const [name, { type, labels }] of Object.entries(METRICS)) {
    if (type !== 'histogram') names.set(name, labels)
    else for (const part of ['bucket', 'sum', 'count']) names.set(`${name}_${part}`, [...labels, 'le'])
  }
  for (const line of forwarderMetrics(new Map()).split('\n')) {
    const name = /^# TYPE (\S+)/.exec(line)?.[1]
    if (name) names.set(name, ['cluster'])
  }
  return names
}

/** Metrics that an expression asks for with the labels that it names, and whether all of it could be read. */
function asked(expr: string): { good: boolean; selectors: { metric: string; labels: string[] }[]; grouping: string[] } {
  const tree = parser.parse(expr)
  const text = (node: { from: number; to: number }) => expr.slice(node.from, node.to)
  let good = true
  const selectors: { metric: string; labels: string[] }[] = []
  const grouping: string[] = []
  tree.iterate({
    enter(node) {
      if (node.type.isError) good = false
      if (node.name === 'VectorSelector') {
        const metric = node.node.getChild('Identifier')
        const labels: string[] = []
        const matchers = node.node.getChild('LabelMatchers')
        matchers?.cursor().iterate((inner) => {
          if (inner.name === 'LabelName') labels.push(text(inner))
        })
        selectors.push({ metric: metric ? text(metric) : '', labels })
      }
      if (node.name === 'GroupingLabels')
        node.node.cursor().iterate((inner) => {
          if (inner.name === 'LabelName') grouping.push(text(inner))
        })
    },
  })
  return { good, selectors, grouping }
}

t.test('what is no PromQL, or asks for what there is not, would be found', async (t) => {
  t.equal(asked('sum by (a) (rate(x{b="c"}[5m]))').good, true)
  t.same(asked('sum by (a) (rate(x{b="c"}[5m]))').selectors, [{ metric: 'x', labels: ['b'] }])
  t.same(asked('sum by (a) (rate(x{b="c"}[5m]))').grouping, ['a'])
  t.equal(asked('sum by (a (x)').good, false)
})

t.test('alerts and dashboard ask for metrics and labels that the roles have', async (t) => {
  const metrics = known()
  for (const expr of [...rules.map((rule) => rule.expr), ...dashboardQueries()]) {
    const { good, selectors, grouping } = asked(expr.replaceAll('$cluster', 'c'))
    t.ok(good, expr)
    t.ok(selectors.length > 0, expr)
    for (const { metric, labels } of selectors) {
      t.ok(metrics.has(metric), `${metric} in ${expr}`)
      for (const label of [...labels, ...grouping]) t.ok(metrics.get(metric)?.includes(label), `${label} of ${metric}`)
    }
  }
})

t.test('every metric that a role serves is in the reference, with its labels', async (t) => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const rows = new Map(
    [...page.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)].map(([, name = '', type, labels]) => [
      name,
      { type, labels },
    ]),
  )
  const served = `${await createMetrics({ process: true }).text()}\n${forwarderMetrics(new Map([['c', STATS]]))}`
  const types = [...served.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  t.ok(types.length > 40)
  for (const [, name = '', type] of types)
    if (!/^(process|nodejs)_/.test(name)) t.equal(rows.get(name)?.type, type, name)
  for (const [, name = ''] of served.matchAll(/^(windlass_forwarder_\w+)\{cluster="c"\}/gm))
    t.equal(rows.get(name)?.labels, '`cluster`')
})

t.test('each alert says what is wrong and what to do', async (t) => {
  t.ok(rules.length > 5)
  for (const { alert, labels, annotations, expr } of rules) {
    t.match(labels.severity, /^(critical|warning|info)$/, alert)
    t.ok(annotations.summary.length > 10 && annotations.description.length > 30, alert)
    const { selectors } = asked(expr)
    for (const [, label] of `${annotations.summary}`.matchAll(/\$labels\.(\w+)/g))
      t.ok(asked(expr).grouping.includes(label ?? ''), `${alert}: ${label} is kept by ${selectors[0]?.metric}`)
  }
})
