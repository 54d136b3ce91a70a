import t from 'tap'
import { countCloudRequests } from '../../src/cli/cloud-metrics.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { bench, node } from '../cloud/hcloud/bench.ts'

t.test(
  'requests to a cloud are counted, by the replaced controller’s names too, with what the account has left',
  async (t) => {
    const metrics = createMetrics()
    const of = await bench({ account: { servers: [{ id: 1, name: 'w1' }] } })
    t.teardown(() => of.close())
    const provider = of.worker({ onRequest: countCloudRequests(metrics) })
    t.match(await provider.instances.find(node('w1'), of.call), { kind: 'found' })
    const text = await metrics.text()
    t.match(text, 'windlass_cloud_requests_total{cloud="hcloud",endpoint="/servers",method="GET",code="200"} 1')
    t.match(text, 'hcloud_api_requests_total{code="200",method="get",api_endpoint="/servers"} 1')
    t.match(text, /windlass_cloud_budget_remaining\{cloud="hcloud",credential="[0-9a-f]{16}"\} \d+/)
    t.notMatch(text, /^windlass_redis_up \d/m, 'what this process does not set is not reported as 0')
  },
)
