import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { render } from './helm.ts'

// Manifests for `kubectl apply -k`, made from the Helm chart: `npm run manifests` writes them.

/** One Secret has all settings of the workers, and each cloud is on whose credentials are in it. */
const OF_ALL = {
  clouds: [],
  image: { repository: 'windlass' },
  env: { HCLOUD_TOKEN: null, ROBOT_USER: null, ROBOT_PASSWORD: null },
  envFrom: [{ secretRef: { name: 'windlass' } }],
}

/**
 * What of that Secret also reaches forwarder and server: neither of them must have the whole of it, nor any credential. Not among these is
 * what the manifests say themselves, what names a file that is not there, and what only Knative's events need.
 */
export const OF_EACH_ROLE = [
  'WINDLASS_CLUSTER',
  'WINDLASS_HCLOUD_LOAD_BALANCER_CLASS',
  'WINDLASS_CHERRY_LOAD_BALANCER_CLASS',
  'WINDLASS_LOG_LEVEL',
  'WINDLASS_LOG_FORMAT',
  'WINDLASS_REDIS_PREFIX',
  'WINDLASS_DASHBOARD_USER',
  'WINDLASS_BODY_LIMIT_BYTES',
  'WINDLASS_GRACE_PERIOD',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_TRACES_SAMPLER_ARG',
]

const SPLIT = {
  ...OF_ALL,
  mode: 'split',
  env: {
    ...OF_ALL.env,
    ...Object.fromEntries(
      OF_EACH_ROLE.map((key) => [key, { valueFrom: { secretKeyRef: { name: 'windlass', key, optional: true } } }]),
    ),
  },
}

const FOLDERS: Readonly<Record<string, { values: object; templates: readonly string[] }>> = {
  'k8s/base': {
    values: OF_ALL,
    templates: ['forwarder-rbac.yaml', 'worker-rbac.yaml', 'all-rbac.yaml', 'cherry-rbac.yaml'],
  },
  'k8s/single': { values: OF_ALL, templates: ['all.yaml'] },
  'k8s/split': { values: SPLIT, templates: ['redis.yaml', 'server.yaml', 'worker.yaml', 'forwarder.yaml'] },
  'k8s/keda': { values: { ...SPLIT, keda: { enabled: true } }, templates: ['scaled-object.yaml'] },
}

/** Texts by path in the repository. */
export async function manifests(): Promise<Map<string, string>> {
  const made = new Map<string, string>()
  for (const [folder, { values, templates }] of Object.entries(FOLDERS)) {
    const parts = partsOf(await render(values))
    for (const template of templates) {
      const text = parts.get(template)
      if (text === undefined) throw new Error(`the chart makes nothing of ${template} for ${folder}`)
      made.set(`${folder}/${template}`, `# Made of the Helm chart in k8s/chart, by \`npm run manifests\`.\n${text}`)
    }
  }
  return made
}

/** What helm prints begins each document with the template that it comes from. */
function partsOf(rendered: string): Map<string, string> {
  const parts = new Map<string, string>()
  for (const part of rendered.split(/^---\n(?=# Source: )/m)) {
    const [, template = '', text = ''] = /^# Source: windlass\/templates\/(\S+)\n([\s\S]*)$/.exec(part) ?? []
    const before = parts.get(template)
    const whole = `${text.trimEnd()}\n`
    if (template !== '') parts.set(template, before === undefined ? whole : `${before}---\n${whole}`)
  }
  return parts
}

if (import.meta.main) {
  for (const [path, text] of await manifests()) {
    const file = join(import.meta.dirname, '..', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}
