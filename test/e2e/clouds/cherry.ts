import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import type { Json } from '../../apiserver/admin.ts'
import { startCherrySimulator } from '../../simulators/cherry/simulator.ts'
import { fillPlaceholders, namedServices, normalAccount } from './cherry-account.ts'
import { cleanCherryCluster, installMetallb, watchedObjects } from './cherry-cluster.ts'
import { normalObjects } from './cherry-objects.ts'
import type { CloudContext, SimulatedCloud } from './cloud.ts'

const token = 'cherry-token-0123456789'
const project = 87553

/**
 * Cherry Servers, with what its controller keeps in the cluster. Keys that only its cases have: `metallb: true` installs
 * MetalLB's definitions and shows their objects in the result (`later`: the step `account: {metallb: install}` does);
 * `metallb_namespaces` are made as well; `external: true` shows the control plane's Service and its Endpoints, or
 * EndpointSlices in their place; `cloud_config` is the content of the controller's JSON configuration file, written as
 * it is if it is text, and not at all if it is null.
 */
export async function startCherry({ definition, dir, admin, url, kubeconfig }: CloudContext): Promise<SimulatedCloud> {
  const simulator = await startCherrySimulator({ token, options: definition.sim ?? {} })
  const { control } = simulator
  try {
    await cleanCherryCluster(admin, definition.metallb === true)
    if (definition.metallb === true) await installMetallb(admin, definition.metallb_namespaces)
  } catch (error) {
    await simulator.close()
    throw error
  }
  const clusterUid: string = (await admin.get('Namespace', undefined, 'kube-system'))?.metadata.uid
  const apiPort = Number(new URL(url).port)
  const configFile = join(dir, 'cloud-sa.json')
  const { cloud_config = {} } = definition
  if (cloud_config !== null) {
    writeFileSync(configFile, typeof cloud_config === 'string' ? cloud_config : JSON.stringify(cloud_config))
  }
  const trusting = kubeconfigThatTrusts(simulator.ca, kubeconfig, join(dir, 'kubeconfig.yaml'))
  const watched = () => watchedObjects(admin, definition)

  return {
    env: () => ({
      CHERRY_API_KEY: token,
      CHERRY_PROJECT_ID: String(project),
      CHERRY_API_URL: simulator.apiUrl,
      CHERRY_CLOUD_CONFIG: configFile,
      KUBECONFIG: trusting,
    }),
    seed: (account) =>
      control.seed({
        projects: [{ id: project, name: 'lab' }],
        ...fillPlaceholders(account, clusterUid),
        settings: { apiserver_port: apiPort, ...account.settings },
      }),
    async mutate({ metallb, ...patch }) {
      if (metallb === 'install') await installMetallb(admin, definition.metallb_namespaces)
      if (Object.keys(patch).length > 0) await control.mutate(fillPlaceholders(patch, clusterUid))
    },
    fault: async (fault) => control.fault(fault),
    async activity() {
      const { revision, inflight, requests } = control.activity()
      const versions = Object.entries(await watched()).map(
        ([name, { metadata }]) => `${name}@${metadata.resourceVersion}`,
      )
      return { revision: [revision, ...versions].join(' '), inflight, requests }
    },
    calls: async () => control.counters().calls,
    async world() {
      const existing = (await admin.listMetadata('Service')).map(({ metadata: m }) => `${m.namespace}/${m.name}`)
      const services = [...namedServices([definition.objects, definition.steps]), ...existing]
      return {
        ...normalAccount(control.state(), definition.account ?? {}, services, clusterUid),
        objects: normalObjects(await watched(), apiPort),
      }
    },
    requestLog: async () => [...control.log(), ...control.probes()],
    stop: () => simulator.close(),
  }
}

/** The controller asks the simulated nodes' API servers for their health, trusting whom it trusts with its own. */
function kubeconfigThatTrusts(ca: string, given: string, path: string): string {
  const config: Json = parse(readFileSync(given, 'utf8'))
  for (const { cluster } of config.clusters) {
    const own = Buffer.from(cluster['certificate-authority-data'], 'base64').toString()
    cluster['certificate-authority-data'] = Buffer.from(`${own.trimEnd()}\n${ca}`).toString('base64')
  }
  writeFileSync(path, stringify(config), { mode: 0o600 })
  return path
}
