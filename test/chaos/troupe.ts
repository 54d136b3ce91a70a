import type { WindlassProcess, World } from '../integration/world.ts'

export type RoleName = 'server' | 'forwarder' | 'worker-1' | 'worker-2'

export interface Life {
  role: RoleName
  process: WindlassProcess
  /** Unix time in milliseconds, if it was killed. */
  killedAtMs?: number
}

/** As long as a kubelet takes for the first restart of a container. */
const RESTART_MS = 300

/** The processes of an installation, each started again when it dies, as a cluster would. */
export class Troupe {
  readonly roles: readonly RoleName[] = ['server', 'forwarder', 'worker-1', 'worker-2']
  readonly kills: Partial<Record<RoleName, number>> = {}
  /** Everything that ever ran, in order. */
  readonly lives: Life[] = []
  readonly #world: World
  readonly #port: number
  #restarting = true

  /** The server has the same port in all its lives, as behind a Service. */
  constructor(world: World, port: number) {
    this.#world = world
    this.#port = port
  }

  startAll(): void {
    for (const role of this.roles) this.#start(role)
  }

  kill(role: RoleName): void {
    const life = this.lives.findLast((one) => one.role === role)
    if (!life || life.killedAtMs !== undefined) return
    life.killedAtMs = Date.now()
    life.process.signal('SIGKILL')
    this.kills[role] = (this.kills[role] ?? 0) + 1
  }

  /** Those that were just killed still come back; then nothing more is started. */
  peace(): void {
    this.#restarting = false
    for (const role of this.roles)
      if (this.lives.findLast((one) => one.role === role)?.killedAtMs !== undefined) this.#start(role)
  }

  #start(role: RoleName): void {
    const address = `127.0.0.1:${this.#port}`
    const command = role.startsWith('worker') ? 'worker' : role
    const env = {
      WINDLASS_LOG_LEVEL: 'debug',
      // An lb11 has room for 25 targets only.
      HCLOUD_LOAD_BALANCERS_TYPE: 'lb21',
      ...(role === 'server' ? { WINDLASS_LISTEN: address } : {}),
      ...(role === 'forwarder' ? { WINDLASS_SERVER_URL: `http://${address}` } : {}),
    }
    const process = this.#world.start(command, { env })
    const life: Life = { role, process }
    this.lives.push(life)
    void process.exited.then(() =>
      setTimeout(() => {
        if (this.#restarting) this.#start(role)
      }, RESTART_MS),
    )
  }
}
