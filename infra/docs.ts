import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { FORWARDER_METRICS } from '../src/cli/forwarder-metrics.ts'
import { defaultOf } from '../src/cli/help.ts'
import { annotationsPage } from '../src/cloud/hcloud/load-balancers/annotations-page.ts'
import { COMMANDS, fileEnvOf, purposeOf, type Setting } from '../src/config/setting.ts'
import { SECTIONS, type Section } from '../src/config/table.ts'
import { METRICS } from '../src/telemetry/metrics.ts'
import { ADMISSION_PATH, admissionPolicy } from './admission.ts'
import { chartSettings } from './chart-settings.ts'
import { dashboard } from './dashboard.ts'

/** Pages that are made of tables in the code, by path in the repository. `node infra/docs.ts` writes them. */
export const PAGES: Readonly<Record<string, () => string>> = {
  'docs/settings.md': settingsPage,
  [ADMISSION_PATH]: admissionPolicy,
  'docs/load-balancer-annotations.md': annotationsPage,
  'docs/metrics.md': metricsPage,
  'infra/grafana.json': dashboard,
  // A chart is packed without what stands outside of its folder.
  'k8s/chart/files/settings.yaml': chartSettings,
  'k8s/chart/files/hetzner-annotations.yaml': admissionPolicy,
  'k8s/chart/files/alerts.yaml': () => readFileSync(new URL('alerts.yaml', import.meta.url), 'utf8'),
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, page] of Object.entries(PAGES)) writeFileSync(new URL(`../${path}`, import.meta.url), page())
}

function settingsPage(): string {
  return `# Settings

<!-- Made by infra/docs.ts from src/config/table.ts: change it there. -->

A flag wins over its variable, that over a file, that over the default. All faults are told at once at start, by name, and never with a secret.

- **Flags**: \`--flag=value\` or \`--flag value\`; a switch alone means true; \`_\` may stand for \`-\`. A secret has a flag for its file only, since everybody on a machine can read a process’s arguments; \`--redis-url\` alone takes the address itself, so leave the password out of it.
- **Secrets** are given as variable, or in a file named by the variable with \`_FILE\` behind it. The plain variable wins if both are there. Blanks and line breaks around a file’s content are dropped; a cloud’s credentials are read again when their file changes.
- **Values** are Go’s, as in the replaced controllers: booleans \`true\` and \`false\` (also \`1 t T TRUE True 0 f F FALSE False\`), durations with units (\`1h30m\`, \`500ms\`), label selectors as in Kubernetes. An empty text means not set, but for booleans, durations and \`HCLOUD_SERVER_CACHE_MODE\` of the Hetzner controller, where it is a fault.
- **Clouds**: a cloud is on when its credentials are set (\`HCLOUD_TOKEN\`, \`CHERRY_API_KEY\`, or a \`--cloud-config\` file with a key), when \`--cloud-provider\` names it, or when a file has a block for it.

## Files

\`--config\` takes YAML: settings by their key (the last column), and what belongs to clouds and controllers in blocks. Names of variables and flags do as keys too, inside the block where the setting belongs: \`HCLOUD_TOKEN\` in \`hcloud\`, \`cluster-cidr\` in \`framework\`.

\`\`\`yaml
redisUrl: redis://redis:6379
kubeconfig: /etc/kubernetes/admin.conf
framework: { clusterCidr: 10.244.0.0/16 }
hcloud: { tokenFile: /run/secrets/hcloud, network: prod }
\`\`\`

Many clusters go into one file, \`WINDLASS_CLUSTERS_FILE\` (or \`clusters\` in the file above), by id. What tells clusters apart (marked ¹) must then stand there; other variables and flags hold for all clusters.

\`\`\`yaml
prod:
  kubeconfig: /etc/windlass/prod.kubeconfig
  webhookKeysFile: /run/secrets/prod-keys
  framework: { controllers: '*,-node-route-controller' }
  hcloud: { tokenFile: /run/secrets/prod-hcloud, network: prod }
lab:
  kubeconfig: /etc/windlass/lab.kubeconfig
  webhookKeysFile: /run/secrets/lab-keys
  cherry: { apiKeyFile: /run/secrets/lab-cherry, projectId: 87553 }
\`\`\`

${SECTIONS.map(sectionOf).join('\n')}`
}

function sectionOf({ title, about, settings }: Section): string {
  const rows = Object.entries(settings)
  const ignored = rows.every(([, setting]) => setting.ignored !== undefined)
  const table = ignored
    ? [row('setting', 'why it has no effect'), row('---', '---'), ...rows.map(([, setting]) => ignoredRow(setting))]
    : [
        row('variable, flag', 'what', 'values', 'default', 'used by', 'key'),
        row('---', '---', '---', '---', '---', '---'),
        ...rows.map(([key, setting]) => settingRow(key, setting)),
      ]
  return `## ${title}\n\n${about}\n\n${table.join('\n')}\n`
}

function settingRow(key: string, setting: Setting): string {
  const names = [setting.env, fileEnvOf(setting), setting.flag === undefined ? undefined : `--${setting.flag}`]
  const former = (setting.formerEnvs ?? []).map((name) => `formerly \`${name}\``)
  const commands =
    setting.commands.length === COMMANDS.length
      ? 'all commands'
      : setting.commands.map((command) => `\`${command}\``).join(' ')
  const required =
    setting.required === undefined
      ? ''
      : `; required${setting.requiredFor === undefined ? '' : `${purposeOf(setting)}, if used,`} by ${setting.required.map((command) => `\`${command}\``).join(' ')}`
  const keys = [
    key,
    setting.jsonKey === undefined || setting.jsonKey === key ? undefined : `${setting.jsonKey} in JSON`,
  ]
  return row(
    [...names.filter((name) => name !== undefined).map((name) => `\`${name}\``), ...former].join('<br>') +
      (setting.ofOneCluster ? ' ¹' : ''),
    setting.doc,
    setting.form,
    defaultCell(setting),
    `${commands}${required}`,
    keys
      .filter((name) => name !== undefined)
      .map((name) => `\`${name}\``)
      .join('<br>'),
  )
}

function defaultCell(setting: Setting): string {
  const own = Object.entries(setting.defaults ?? {}).map(([command, text]) => `\`${text}\` (${command})`)
  if (own.length > 0) return own.join('<br>')
  const shown = defaultOf(setting)
  return shown === undefined ? '–' : shown === setting.default ? `\`${shown}\`` : shown
}

function ignoredRow({ flag, env = '', ignored = '' }: Setting): string {
  return row(`\`${flag === undefined ? env : `--${flag}`}\``, ignored)
}

function metricsPage(): string {
  return `# Metrics

<!-- Made by infra/docs.ts from src/telemetry/metrics.ts and src/cli/forwarder-metrics.ts: change it there. -->

Server, worker and \`all\` serve these at \`/metrics\`, with Node's own (\`process_…\`, \`nodejs_…\`) beside them; a role has values only of what it does itself. Names without \`windlass_\` are those of the replaced controllers. A forwarder serves \`windlass_forwarder_…\` alone, and \`all\` these too.

${[
  row('name', 'type', 'labels', 'what it tells'),
  row('---', '---', '---', '---'),
  ...Object.entries({ ...METRICS, ...FORWARDER_METRICS }).map(([name, { type, labels, help }]) =>
    row(`\`${name}\``, type, labels.map((label) => `\`${label}\``).join(' ') || '–', help),
  ),
].join('\n')}
`
}

function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
