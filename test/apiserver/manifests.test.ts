import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { startApiServer } from './start.ts'

const manifests = parseAllDocuments(readFileSync(join(import.meta.dirname, '../../k8s/single/deployment.yaml'), 'utf8'))

t.test('the API server takes the single install as it is, with no field that it does not know', async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  for (const document of manifests) {
    const manifest = document.toJS()
    const { kind, metadata } = manifest
    const path = `/apis/apps/v1/namespaces/${metadata.namespace}/deployments?fieldValidation=Strict`
    const made = await server.admin.send('POST', path, manifest)
    t.equal(made.kind, kind)
    const { containers, serviceAccountName } = made.spec.template.spec
    t.equal(containers.length, 2)
    const account = `/api/v1/namespaces/${metadata.namespace}/serviceaccounts/${serviceAccountName}`
    t.equal((await server.admin.send('GET', account)).metadata.name, serviceAccountName, 'its account is in the base')
  }
})
