import { startHcloudSimulator } from '../../simulators/hcloud/simulator.ts'
import type { CloudContext, SimulatedCloud } from './cloud.ts'
import { normalAccount } from './hcloud-account.ts'

/** Hetzner Cloud with Robot and the metadata service. */
export async function startHcloud({ definition }: CloudContext): Promise<SimulatedCloud> {
  const token = 'k'.repeat(64)
  const robot = { user: 'robot', password: 'secret' }
  const simulator = await startHcloudSimulator({ token, robot, options: definition.sim ?? {} })
  const { control } = simulator
  return {
    env: () => ({
      HCLOUD_ENDPOINT: simulator.apiUrl,
      HCLOUD_TOKEN: token,
      ROBOT_ENDPOINT: simulator.robotUrl,
      HCLOUD_METADATA_ENDPOINT: simulator.metadataUrl,
      // The replaced controller's fixed port; several controllers run side by side here.
      HCLOUD_METRICS_ENABLED: 'false',
    }),
    seed: async (account) => control.seed(structuredClone(account)),
    mutate: async (patch) => control.mutate(structuredClone(patch)),
    fault: async (fault) => control.fault(fault),
    async activity() {
      const { revision, inflight, requests } = control.activity()
      return { revision: String(revision), inflight, requests }
    },
    calls: async () => control.counters().calls,
    world: async () => normalAccount(structuredClone(control.state())),
    requestLog: async () => control.log(),
    stop: () => simulator.close(),
  }
}
