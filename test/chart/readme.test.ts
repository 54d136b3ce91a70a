import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHART, helm } from '../../infra/helm.ts'
import { deploymentsOf, objectsOf, rolesOf, startOf } from './pods.ts'

const ROOT = join(import.meta.dirname, '../..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** Words of a command of the README, as a shell makes them. */
function wordsOf(begin: string): string[] {
  const from = README.indexOf(begin)
  if (from < 0) throw new Error(`the README has no ${begin}`)
  const [command = ''] = /^(?:.*\\\n)*.*/.exec(README.slice(from)) ?? []
  return execFileSync('sh', ['-c', `printf '%s\\0' ${command}`])
    .toString()
    .split('\0')
    .slice(0, -1)
}

t.test('the install of the README is one with nothing to notice, and with all that load balancers need', async (t) => {
  const [, , , release = '', chart = '', ...more] = wordsOf('helm upgrade --install')
  t.equal(join(ROOT, chart), CHART)
  const { code, stdout, stderr } = await helm(['template', release, CHART, ...more])
  t.equal(code, 0, stderr)
  const objects = objectsOf(stdout)
  const words = wordsOf('kubectl -n kube-system create secret generic hcloud')
  const [, , , , , , secret = '', , literal = ''] = words
  const [key = ''] = literal.split('=')
  for (const container of deploymentsOf(objects).flatMap(rolesOf)) {
    const { settings, notices } = await startOf(container, objects, { [secret]: { [key]: 'k'.repeat(64) } })
    t.same(notices, [])
    t.match(settings.clusters[0]?.clouds.hcloud, { loadBalancers: { location: 'fsn1', type: 'lb11' } })
  }
})

t.test('each manifest that is named in a text is there', (t) => {
  const docs = readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)
  let named = 0
  for (const page of ['README.md', ...docs])
    for (const [path] of readFileSync(join(ROOT, page), 'utf8').matchAll(
      /\b(?:k8s|infra)\/[\w/-]+(?:\.[a-z]+)?(?![\w$*])/g,
    )) {
      t.ok(existsSync(join(ROOT, path)), `${page}: ${path}`)
      named += 1
    }
  t.ok(named > 20)
  t.end()
})
