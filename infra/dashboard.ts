/** A row of panels; each panel is one question to Prometheus. */
interface Row {
  title: string
  panels: Panel[]
}

interface Panel {
  title: string
  unit: string
  queries: { expr: string; legend: string }[]
}

const p95 = (metric: string, by: string) =>
  `histogram_quantile(0.95, sum by (le, ${by}) (rate(${metric}_bucket{cluster=~"$cluster"}[5m])))`
const perSecond = (metric: string, by: string, matchers = 'cluster=~"$cluster"') =>
  `sum by (${by}) (rate(${metric}{${matchers}}[5m]))`

const ROWS: Row[] = [
  {
    title: 'Is all well?',
    panels: [
      {
        title: 'Longest wait',
        unit: 's',
        queries: [
          { expr: 'max by (cluster) (windlass_oldest_waiting_seconds{cluster=~"$cluster"})', legend: '{{cluster}}' },
        ],
      },
      {
        title: 'Jobs',
        unit: 'short',
        queries: [{ expr: 'max by (state) (windlass_jobs{cluster=~"$cluster"})', legend: '{{state}}' }],
      },
      {
        title: 'Runs by outcome',
        unit: 'ops',
        queries: [{ expr: perSecond('windlass_runs_total', 'outcome'), legend: '{{outcome}}' }],
      },
      {
        title: 'Held deletions, and what no Service has any more',
        unit: 'short',
        queries: [
          {
            expr: 'max by (cluster) (windlass_node_deletions_held{cluster=~"$cluster"})',
            legend: 'held in {{cluster}}',
          },
          {
            expr: 'max by (cluster, cloud) (windlass_orphans{cluster=~"$cluster"})',
            legend: 'left at {{cloud}}, {{cluster}}',
          },
        ],
      },
    ],
  },
  {
    title: 'From the change to the cloud',
    panels: [
      {
        title: 'Events by type',
        unit: 'ops',
        queries: [{ expr: perSecond('windlass_events_received_total', 'type'), legend: '{{type}}' }],
      },
      {
        title: 'A batch until its answer, 95 %',
        unit: 's',
        queries: [{ expr: p95('windlass_event_batch_duration_seconds', 'cluster'), legend: '{{cluster}}' }],
      },
      {
        title: 'A change until its run, 95 %',
        unit: 's',
        queries: [{ expr: p95('windlass_change_to_run_seconds', 'kind'), legend: '{{kind}}' }],
      },
      {
        title: 'Runs, 95 %',
        unit: 's',
        queries: [{ expr: p95('windlass_run_duration_seconds', 'kind'), legend: '{{kind}}' }],
      },
    ],
  },
  {
    title: 'Clouds',
    panels: [
      {
        title: 'Requests',
        unit: 'reqps',
        queries: [
          {
            expr: perSecond('windlass_cloud_requests_total', 'cloud, method, endpoint', ''),
            legend: '{{cloud}} {{method}} {{endpoint}}',
          },
        ],
      },
      {
        title: 'Answers that are no success',
        unit: 'reqps',
        queries: [
          {
            expr: perSecond('windlass_cloud_requests_total', 'cloud, code', 'code!~"2.."'),
            legend: '{{cloud}} {{code}}',
          },
        ],
      },
      {
        title: 'Requests left',
        unit: 'short',
        queries: [
          { expr: 'min by (cloud, credential) (windlass_cloud_budget_remaining)', legend: '{{cloud}} {{credential}}' },
        ],
      },
      {
        title: 'Changes carried out',
        unit: 'ops',
        queries: [
          {
            expr: perSecond('windlass_changes_applied_total', 'controller, change'),
            legend: '{{controller}}: {{change}}',
          },
        ],
      },
    ],
  },
]

/** All that the dashboard asks. */
export const dashboardQueries = () =>
  ROWS.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)))

const WIDTH = 24
const HEIGHT = 8
const datasource = { type: 'prometheus', uid: '$datasource' }

/** A dashboard for Grafana, to be imported as it is. */
export function dashboard(): string {
  let id = 0
  const panels = ROWS.flatMap(({ title, panels: inRow }, row) => {
    const y = row * (HEIGHT + 1)
    const width = WIDTH / inRow.length
    return [
      { id: ++id, type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: WIDTH, h: 1 }, panels: [] },
      ...inRow.map(({ title, unit, queries }, i) => ({
        id: ++id,
        type: 'timeseries',
        title,
        datasource,
        gridPos: { x: i * width, y: y + 1, w: width, h: HEIGHT },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        targets: queries.map(({ expr, legend }, at) => ({
          refId: String.fromCharCode(65 + at),
          datasource,
          expr,
          legendFormat: legend,
        })),
      })),
    ]
  })
  const board = {
    uid: 'windlass',
    title: 'Windlass',
    tags: ['windlass'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        {
          name: 'cluster',
          type: 'query',
          datasource,
          query: 'label_values(windlass_runs_total, cluster)',
          refresh: 2,
          includeAll: true,
          multi: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
        },
      ],
    },
    panels,
  }
  return `${JSON.stringify(board, null, 2)}\n`
}
