import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

export interface RedisOptions {
  /** Further arguments of redis-server, e.g. `['--requirepass', 'x']`; they win over the fixture's own. */
  args?: string[]
  /** Instead of a port of the OS' choice. */
  port?: number
  /** Password for the fixture's own commands and in `url`; sets `requirepass` too. */
  password?: string
  /** Makes it a sentinel with these lines of configuration. */
  sentinel?: string
}

export interface RedisFixture {
  readonly url: string
  readonly port: number
  /** Of the server that runs now; changes with `restart`. */
  readonly pid: number
  /** One command on a connection of its own. */
  command(name: string, ...args: (string | number)[]): Promise<unknown>
  flush(): Promise<void>
  /** `CONFIG SET`. */
  config(name: string, value: string): Promise<void>
  /** Ends it in an orderly way and removes its directory. Safe to call twice. */
  stop(): Promise<void>
  /** As if the machine lost power; what it held is gone. */
  kill9(): Promise<void>
  /** Starts again on the same port after `stop` or `kill9`. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
}

/** A redis-server of its own on a loopback port that the OS chose, with nothing on disk that outlives it. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisFixture> {
  let port = options.port ?? (await freePort())
  let server: Running | undefined
  for (let tries = 1; ; tries++) {
    try {
      server = await launch(port, options)
      break
    } catch (error) {
      // Between the probe and the start another process may have taken the port.
      if (options.port !== undefined || tries === 5 || !String(error).includes('in use')) throw error
      port = await freePort()
    }
  }

  async function command(name: string, ...args: (string | number)[]): Promise<unknown> {
    const client = new Redis({
      host: '127.0.0.1',
      port,
      password: options.password,
      lazyConnect: true,
      retryStrategy: null as never,
      maxRetriesPerRequest: 0,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.call(name, ...args)
    } finally {
      client.disconnect()
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const running = server
    server = undefined
    await running?.end(signal)
  }

  return {
    url: `redis://${options.password ? `:${encodeURIComponent(options.password)}@` : ''}127.0.0.1:${port}`,
    port,
    get pid() {
      if (!server) throw new Error('redis-server is not running')
      return server.pid
    },
    command,
    flush: async () => void (await command('FLUSHALL')),
    config: async (name, value) => void (await command('CONFIG', 'SET', name, value)),
    stop: () => end('SIGTERM'),
    kill9: () => end('SIGKILL'),
    async restart() {
      await end('SIGTERM')
      server = await launch(port, options)
    },
    pause: () => void (server && process.kill(server.pid, 'SIGSTOP')),
    resume: () => void (server && process.kill(server.pid, 'SIGCONT')),
  }
}

/** A loopback port that was free a moment ago. */
export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => (address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))))
    })
  })
}

interface Running {
  pid: number
  end(signal: NodeJS.Signals): Promise<void>
}

const children = new Set<{ child: ChildProcess; dir: string }>()
process.once('exit', () => {
  for (const { child, dir } of children) {
    child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
})

async function launch(port: number, options: RedisOptions): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-redis-'))
  const config = join(dir, 'sentinel.conf')
  if (options.sentinel !== undefined) writeFileSync(config, options.sentinel)
  const args = [
    ...(options.sentinel === undefined ? [] : [config, '--sentinel']),
    ...['--bind', '127.0.0.1', '--port', String(port), '--dir', dir],
    ...(options.sentinel === undefined
      ? ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0']
      : []),
    ...(options.password ? ['--requirepass', options.password] : []),
    ...(options.args ?? []),
  ]
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const entry = { child, dir }
  children.add(entry)
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  void gone.then(() => {
    children.delete(entry)
    rmSync(dir, { recursive: true, force: true })
  })

  await new Promise<void>((resolve, reject) => {
    let output = ''
    const read = (chunk: Buffer) => {
      output = (output + chunk).slice(-4000)
      if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', (error: NodeJS.ErrnoException) => {
      children.delete(entry)
      rmSync(dir, { recursive: true, force: true })
      reject(
        error.code === 'ENOENT'
          ? new Error(
              'redis-server is not on the PATH: install Redis 6.2 or newer (Debian: apt-get install redis-server)',
            )
          : error,
      )
    })
    child.once('exit', (code) => reject(new Error(`redis-server ended with code ${code}: ${output.trim()}`)))
  })

  return {
    pid: child.pid as number,
    async end(signal) {
      child.kill(signal)
      // A stopped process takes no signal but these two.
      if (signal !== 'SIGKILL') child.kill('SIGCONT')
      await gone
    },
  }
}
