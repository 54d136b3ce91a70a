import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { manifests } from '../../infra/manifests.ts'
import packageJson from '../../package.json' with { type: 'json' }

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
