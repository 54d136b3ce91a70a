import type { Metrics } from '../telemetry/metrics.ts'

/** One request to a cloud; `status` is absent when there was no answer. */
export interface CloudRequest {
  api: string
  method: string
  /** Path with ids as `-`, without query. */
  endpoint: string
  status?: number
  durationMs: number
  quota?: { credential: string; remaining: number }
}

/** Counts what is asked of a cloud, also by the names that the replaced controller's dashboards know. */
export function countCloudRequests(metrics: Metrics): (seen: CloudRequest) => void {
  return ({ api, method, endpoint, status, durationMs, quota }) => {
    const code = status === undefined ? 'error' : String(status)
    metrics.increment('windlass_cloud_requests_total', 1, { cloud: api, endpoint, method, code })
    metrics.observe('windlass_cloud_request_duration_seconds', durationMs / 1000, { cloud: api, method })
    if (quota)
      metrics.set('windlass_cloud_budget_remaining', quota.remaining, { cloud: api, credential: quota.credential })
    if (api !== 'hcloud' || status === undefined) return
    const labels = { code, method: method.toLowerCase(), api_endpoint: endpoint }
    metrics.increment('hcloud_api_requests_total', 1, labels)
    metrics.observe('hcloud_api_request_duration_seconds', durationMs / 1000, { method: labels.method })
  }
}
