import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { manifests, OF_EACH_ROLE } from '../../infra/manifests.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { appliesTo, SETTINGS } from '../../src/config/table.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

t.test('what `kubectl apply -k` takes is what the chart makes', async (t) => {
  const made = await manifests()
  t.ok(made.size > 9)
  for (const [path, text] of made) t.equal(read(path), text, `${path}: run npm run manifests`)
})

t.test('each folder lists the manifests that were made for it, and the release is one of the chart', async (t) => {
  for (const path of (await manifests()).keys()) {
    const [, folder = '', file = ''] = /^(.*)\/(.*?)$/.exec(path) ?? []
    const { resources } = parse(read(`${folder}/kustomization.yaml`)) as { resources: string[] }
    t.ok(resources.includes(file), path)
  }
  const { version, appVersion } = parse(read('k8s/chart/Chart.yaml')) as Record<string, string>
  t.same([version, appVersion], [packageJson.version, packageJson.version])
})

/** Settings of a forwarder or a server that it can't have from the Secret with all settings. */
const ELSEWHERE = /_LISTEN$|_SERVER_URL$|_FILE$|_CONFIG$|^KUBECONFIG$|_CONTEXT$|_KNATIVE_/

t.test(
  'each setting of forwarder and server reaches them from the Secret with all settings, and no secret does',
  (t) => {
    const theirs = SETTINGS.filter(
      (setting) => (appliesTo(setting, 'forwarder') || appliesTo(setting, 'server')) && setting.ignored === undefined,
    )
    const reaching = theirs.filter(({ env = '', kind }) => env !== '' && kind !== 'secret' && !ELSEWHERE.test(env))
    t.same(reaching.map(({ env }) => env).sort(), [...OF_EACH_ROLE].sort())
    t.end()
  },
)
