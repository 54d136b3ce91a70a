import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { type ApiServer, startApiServer } from '../apiserver/start.ts'
import { type RedisFixture, startRedis } from '../redis.ts'
import type { Case } from './case.ts'
import { cleanCluster } from './cluster.ts'
import { compare } from './compare/compare.ts'
import type { Options } from './options.ts'
import { type Reaper, startReaper } from './reaper.ts'
import type { Verdict } from './report.ts'
import { runCase } from './run.ts'

/** Plays all cases, some at a time, and reports each as it ends. */
export async function playCases(
  cases: Case[],
  options: Options,
  report: (verdict: Verdict) => void,
): Promise<Verdict[]> {
  const work = mkdtempSync(join(tmpdir(), 'windlass-e2e-'))
  const reaper = startReaper()
  const queue = [...cases]
  const verdicts: Verdict[] = []

  async function job(): Promise<void> {
    const place = await preparePlace(options)
    try {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const verdict = await playCase(next, place, join(work, next.id), options, reaper)
        if (verdict.lines.length === 0 && !options.keep) rmSync(verdict.dir, { recursive: true, force: true })
        verdicts.push(verdict)
        report(verdict)
      }
    } finally {
      await place.stop()
    }
  }

  await Promise.all(Array.from({ length: Math.min(options.jobs, cases.length) }, job))
  if (!options.keep && verdicts.every(({ lines }) => lines.length === 0)) {
    rmSync(work, { recursive: true, force: true })
  }
  return verdicts
}

/** What one job has to itself. */
interface Place {
  apiServer: ApiServer
  redisUrl: string
  /** Present if the job's Redis is its own. */
  redis: RedisFixture | undefined
  stop(): Promise<void>
}

async function preparePlace({ redisUrl }: Options): Promise<Place> {
  const [apiServer, redis] = await Promise.all([
    startApiServer({ log: (line) => console.error(line) }),
    redisUrl ? undefined : startRedis(),
  ])
  return {
    apiServer,
    redis,
    redisUrl: redisUrl ?? redis?.url ?? '',
    stop: async () => void (await Promise.all([apiServer.stop(), redis?.stop()])),
  }
}

async function playCase(
  definition: Case,
  { apiServer, redis, redisUrl }: Place,
  dir: string,
  { pace, command, verbose }: Options,
  reaper: Reaper,
): Promise<Verdict> {
  const startedAt = performance.now()
  const lines: string[] = []
  try {
    await Promise.all([cleanCluster(apiServer.admin), redis?.flush()])
    const { result, faults } = await runCase({
      definition,
      dir,
      admin: apiServer.admin,
      url: apiServer.url,
      kubeconfig: apiServer.kubeconfigFor('all'),
      env: {
        WINDLASS_REDIS_URL: redisUrl,
        WINDLASS_REDIS_PREFIX: `${definition.id}.${process.pid}`.slice(-64),
        WINDLASS_LISTEN: '127.0.0.1:0',
      },
      command,
      pace,
      reaper,
      verbose,
    })
    writeFileSync(join(dir, 'result.yaml'), stringify(result, { lineWidth: 160 }))
    lines.push(...faults, ...compare(definition, result))
  } catch (error) {
    lines.push(`harness: ${error instanceof Error ? error.stack : String(error)}`)
  }
  return { id: definition.id, seconds: (performance.now() - startedAt) / 1000, lines, dir }
}
