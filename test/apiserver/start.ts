import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../redis.ts'
import { type Admin, adminClient } from './admin.ts'
import { type Binaries, buildBinaries } from './build.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { grantRights, type Role, roles, tokenFor } from './roles.ts'
import { type Servant, startServant } from './servant.ts'

export interface ApiServerOptions {
  log?: (line: string) => void
}

export interface ApiServer {
  readonly url: string
  /** PEM of the certificate that it serves. */
  readonly ca: string
  readonly admin: Admin
  /** Bearer token with all rights. */
  readonly adminToken: string
  /** Writes a kubeconfig with all rights to `path` and returns it. */
  adminKubeconfig(path: string): string
  /** Path of a kubeconfig with the rights that `k8s/base` grants this role. */
  kubeconfigFor(role: Role): string
  tokenFor(role: Role): string
  /** kill -9 of kube-apiserver; what it stored stays. */
  kill9(): Promise<void>
  /** Starts kube-apiserver again on the same port and with the same data, after `kill9` or in its place. */
  restart(): Promise<void>
  /** Ends both servers and removes what they stored. Safe to call twice. */
  stop(): Promise<void>
}

/**
 * A real kube-apiserver with an etcd of its own, on a loopback port of the OS' choice, with RBAC on and the rights of
 * `k8s/base` applied. Any number run side by side. Needs Go (see `build.ts`) unless it was built before.
 */
export async function startApiServer({ log = () => {} }: ApiServerOptions = {}): Promise<ApiServer> {
  const binaries = await buildBinaries(log)
  const dir = mkdtempSync(join(tmpdir(), 'windlass-apiserver-'))
  const adminToken = randomBytes(24).toString('hex')
  writeCredentials(dir, adminToken)

  const etcd = startEtcd(binaries, dir)
  let apiServer: Servant | undefined
  try {
    let port = await freePort()
    for (let tries = 1; ; tries++) {
      apiServer = launch(binaries, dir, port)
      if (await ready(apiServer, etcd, port, dir)) break
      // Between the probe and the start another process may have taken the port.
      if (tries === 5 || !apiServer.lastWords().includes('address already in use')) throw neverReady(apiServer, etcd)
      port = await freePort()
    }

    const url = `https://127.0.0.1:${port}`
    const ca = readFileSync(join(dir, 'apiserver.crt'), 'utf8')
    const admin = adminClient({ url, ca, token: adminToken })
    await grantRights(admin)
    const tokens = new Map<Role, string>()
    for (const role of roles) {
      const token = await tokenFor(admin, role)
      tokens.set(role, token)
      writeKubeconfig(join(dir, `${role}.kubeconfig`), role, url, ca, token)
    }

    const kill9 = async () => void (await apiServer?.end('SIGKILL'))
    return {
      url,
      ca,
      admin,
      adminToken,
      adminKubeconfig: (path) => writeKubeconfig(path, 'admin', url, ca, adminToken),
      kubeconfigFor: (role) => join(dir, `${role}.kubeconfig`),
      tokenFor: (role) => tokens.get(role) ?? '',
      kill9,
      async restart() {
        await kill9()
        for (let tries = 1; ; tries++) {
          apiServer = launch(binaries, dir, port)
          if (await ready(apiServer, etcd, port, dir)) return
          if (tries === 5) throw neverReady(apiServer, etcd)
        }
      },
      async stop() {
        admin.close()
        // Nothing of it is kept, so there is nothing to wait for in an orderly end.
        await Promise.all([apiServer?.end('SIGKILL'), etcd.end('SIGKILL')])
        rmSync(dir, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await Promise.all([apiServer?.end('SIGKILL'), etcd.end('SIGKILL')])
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
}

const readyWithinMs = 90_000

function writeCredentials(dir: string, adminToken: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  writeFileSync(join(dir, 'service-account.key'), privateKey, { mode: 0o600 })
  writeFileSync(join(dir, 'service-account.pub'), publicKey)
  writeFileSync(join(dir, 'tokens.csv'), `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 })
}

function startEtcd({ etcd }: Binaries, dir: string): Servant {
  // etcd wants a host and a port even here: these are sockets of that name in its working directory.
  const client = 'unix://client:0'
  const peer = 'unix://peer:0'
  const args = [
    ...['--name=test', `--data-dir=${join(dir, 'etcd')}`, '--unsafe-no-fsync', '--log-level=warn'],
    ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
    ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`, `--initial-cluster=test=${peer}`],
    // A member that is alone need not wait long for others before it leads.
    ...['--heartbeat-interval=20', '--election-timeout=200'],
  ]
  return startServant(etcd, args, join(dir, 'etcd.log'), dir)
}

function launch({ kubeApiserver }: Binaries, dir: string, port: number): Servant {
  const args = [
    `--etcd-servers=unix://${join(dir, 'client:0')}`,
    ...['--bind-address=127.0.0.1', `--secure-port=${port}`, `--cert-dir=${dir}`],
    ...['--authorization-mode=RBAC', `--token-auth-file=${join(dir, 'tokens.csv')}`],
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${join(dir, 'service-account.key')}`,
    `--service-account-key-file=${join(dir, 'service-account.pub')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    // Loopback is no address for an endpoint, and tests write default/kubernetes themselves.
    '--endpoint-reconciler-type=none',
    '--profiling=false',
  ]
  return startServant(kubeApiserver, args, join(dir, 'kube-apiserver.log'), dir)
}

/** False if either server ended before that. */
async function ready(apiServer: Servant, etcd: Servant, port: number, dir: string): Promise<boolean> {
  const deadline = performance.now() + readyWithinMs
  while (!apiServer.ended && !etcd.ended && performance.now() < deadline) {
    if (await saysReady(port, dir)) return true
    await delay(40)
  }
  return false
}

function saysReady(port: number, dir: string): Promise<boolean> {
  return new Promise((resolve) => {
    let ca: string
    try {
      ca = readFileSync(join(dir, 'apiserver.crt'), 'utf8')
    } catch {
      resolve(false)
      return
    }
    const probe = request(`https://127.0.0.1:${port}/readyz`, { ca, agent: false, timeout: 2_000 }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode === 200))
      response.on('error', () => resolve(false))
    })
    probe.on('timeout', () => probe.destroy())
    probe.on('error', () => resolve(false))
    probe.end()
  })
}

function neverReady(apiServer: Servant, etcd: Servant): Error {
  const who = etcd.ended ? 'etcd ended' : apiServer.ended ? 'kube-apiserver ended' : 'kube-apiserver never got ready'
  return new Error(`${who}\netcd: ${etcd.lastWords()}\nkube-apiserver: ${apiServer.lastWords()}`)
}
