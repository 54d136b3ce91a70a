import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { permanent } from '../../errors.ts'
import { createSharedRead } from '../shared-read.ts'
import type { CherryClient } from './client.ts'
import type { Project } from './model.ts'

/** The project, which hardly changes. */
export interface Projects {
  get(call: Call, options?: { fresh?: boolean }): Promise<Project>
  /** What a write has answered, for all workers. */
  learn(project: Project, call: Call): Promise<void>
}

const MAX_AGE_MS = 30_000

export function createProjects(options: {
  client: CherryClient
  redis?: Redis
  prefix: string
  projectId: number
}): Projects {
  const { client, redis, prefix, projectId } = options
  let learnt: Project | undefined
  const shared = createSharedRead<Project>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:cherry:v1:project:${client.account()}`,
    maxAgeMs: MAX_AGE_MS,
    async fetch(call) {
      const known = learnt
      learnt = undefined
      if (known) return known
      const project = await client.project.get(call)
      if (project) return project
      throw permanent(`Cherry Servers has no project ${projectId} for this API key: check CHERRY_PROJECT_ID.`, {
        status: 404,
      })
    },
  })
  return {
    get: (call, { fresh } = {}) => (fresh ? shared.fresh(call) : shared.get(call)),
    async learn(project, call) {
      learnt = project
      await shared.fresh(call)
    },
  }
}
