import { randomUUID } from 'node:crypto'
import { readFile } from '../../config/read-file.ts'
import type { ClusterSettings, ForwarderSettings } from '../../config/types.ts'
import { messageOf } from '../../errors.ts'
import { sign } from '../../events/sign.ts'
import { BATCH_CONTENT_TYPE, eventsPath, SERVER_TIME_HEADER } from '../../events/types.ts'
import { HttpClient } from '../../http/client.ts'
import { ok, problem, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'server'
const TIMEOUT_MS = 5000

/** Posts an empty batch, as a forwarder does that has nothing to say. */
export async function checkServer(
  { id, webhookKeys }: ClusterSettings,
  forwarder: ForwarderSettings,
): Promise<Finding[]> {
  const { serverUrl, caFile } = forwarder
  const [key] = webhookKeys
  if (serverUrl === '' || key === undefined)
    return [
      warning(
        AREA,
        `Whether a server takes events was not asked: ${serverUrl === '' ? 'its address' : 'a webhook key'} is not set`,
        'Set WINDLASS_SERVER_URL and WINDLASS_WEBHOOK_KEYS as the forwarder has them; with `windlass all` there is nothing to ask',
      ),
    ]
  const http = new HttpClient(caFile === undefined ? {} : { extraCa: readFile(caFile) })
  const body = '[]'
  try {
    const { status, headers } = await http.request({
      method: 'POST',
      url: `${serverUrl}${eventsPath(id)}`,
      headers: { 'content-type': BATCH_CONTENT_TYPE, ...sign(key, randomUUID(), Date.now(), body) },
      body,
      timeoutMs: TIMEOUT_MS,
    })
    const said = `The server at ${serverUrl} answered ${status} to a signed, empty batch of cluster ${id}`
    if (status === 202) return [ok(AREA, `The server at ${serverUrl} takes the events of cluster ${id}`)]
    if (status === 401 && headers[SERVER_TIME_HEADER] !== undefined)
      return [warning(AREA, `${said}: the clocks differ by minutes`, 'Set the clock of this host or of the server')]
    if (status === 401) return [problem(AREA, said, 'Give forwarder and server the same webhook key of this cluster')]
    if (status === 404) return [problem(AREA, said, 'Give the server this cluster, or correct WINDLASS_CLUSTER')]
    if (status === 429 || status === 503) return [problem(AREA, said, 'Look at Redis: the server can not write to it')]
    return [problem(AREA, said, 'This is no Windlass server, or something stands before it: check WINDLASS_SERVER_URL')]
  } catch (error) {
    return [
      problem(
        AREA,
        `The server at ${serverUrl} does not answer: ${messageOf(error)}`,
        'Check WINDLASS_SERVER_URL, WINDLASS_SERVER_CA_FILE and the network between',
      ),
    ]
  } finally {
    http.close()
  }
}
