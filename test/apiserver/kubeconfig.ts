import { writeFileSync } from 'node:fs'
import { stringify } from 'yaml'

/** Writes a kubeconfig with one user and a bearer token; returns its path. */
export function writeKubeconfig(path: string, user: string, url: string, ca: string, token: string): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user } }],
    'current-context': 'test',
  }
  writeFileSync(path, stringify(config), { mode: 0o600 })
  return path
}
