import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { render } from '../../infra/helm.ts'
import type { Json } from '../apiserver/admin.ts'
import { trigger } from '../queue/rig.ts'
import { harness } from '../server/harness.ts'
import { KEDA, moduleDir } from './crds.ts'
import { objectsOf } from './pods.ts'

const TOKEN = 'let me in'

async function scaled(values: object): Promise<{ objects: Json[]; trigger: Json; metadata: Json }> {
  const image = { repository: 'registry.example.com/windlass' }
  const objects = objectsOf(await render({ image, mode: 'split', ...values, keda: { enabled: true } }))
  const [trigger] = objects.find(({ kind }) => kind === 'ScaledObject').spec.triggers
  return { objects, trigger, metadata: trigger.metadata }
}

for (const metricsToken of [false, true])
  t.test(
    `KEDA finds the number of jobs where it is told to look, ${metricsToken ? 'with' : 'without'} a token`,
    async (t) => {
      const { objects, trigger: told, metadata } = await scaled({ server: { metricsToken } })
      const h = await harness(t, metricsToken ? { metricsToken: TOKEN } : {})
      const address = await h.server.app.listen({ host: '127.0.0.1', port: 0 })
      await h.deps.enqueuer.enqueue('default', [trigger('a'), trigger('b'), trigger('later', { delayMs: 3_600_000 })])

      // The Service of the server, by its name in the cluster's DNS.
      const url = new URL(metadata.url)
      const [service, namespace] = url.hostname.split('.')
      const { spec } = objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === service)
      t.equal(namespace, 'windlass')
      t.equal(String(spec.ports[0].port), url.port)

      const headers: Record<string, string> = {}
      if (metricsToken) {
        const reference = objects.find(({ kind }) => kind === 'TriggerAuthentication')
        t.match(told, { authenticationRef: { name: reference.metadata.name }, metadata: { authMode: 'bearer' } })
        t.match(reference.spec.secretTargetRef, [
          { parameter: 'token', name: 'windlass-internal', key: 'WINDLASS_METRICS_TOKEN' },
        ])
        t.equal((await fetch(new URL(url.pathname, address))).status, 401, 'nobody else is told')
        headers.authorization = `Bearer ${TOKEN}`
      } else t.notOk(told.authenticationRef)

      const answer = await fetch(new URL(url.pathname, address), { headers })
      t.equal(answer.status, 200)
      t.equal(((await answer.json()) as Record<string, unknown>)[metadata.valueLocation], 2)
    },
  )

t.test(
  'the trigger has no parameter that KEDA does not know, and none of its values is out of what it takes',
  async (t) => {
    const { scalers } = JSON.parse(
      readFileSync(join(await moduleDir(KEDA), 'schema/generated/scalers-schema.json'), 'utf8'),
    ) as { scalers: { type: string; parameters: Json[] }[] }
    for (const metricsToken of [false, true]) {
      const { objects, trigger: told, metadata } = await scaled({ server: { metricsToken } })
      const { parameters = [] } = scalers.find(({ type }) => type === told.type) ?? {}
      const known = new Map(parameters.map((one) => [one.name, one]))
      for (const [name, value] of Object.entries(metadata)) {
        t.match(known.get(name), { metadataVariableReadable: true }, name)
        t.type(value, 'string', name)
        const allowed = known.get(name)?.allowedValue
        if (allowed) t.ok(allowed.includes(value), `${name}: ${value}`)
      }
      for (const { name, optional, default: byDefault } of parameters)
        if (!optional && byDefault === undefined && known.get(name)?.metadataVariableReadable)
          t.ok(name in metadata || /apiKey/.test(name), name)
      for (const { spec } of objects.filter(({ kind }) => kind === 'TriggerAuthentication'))
        for (const { parameter } of spec.secretTargetRef)
          t.match(known.get(parameter), { triggerAuthenticationVariableReadable: true })
    }
  },
)
