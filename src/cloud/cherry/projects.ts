import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { permanent } from '../../errors.ts'
import { createSharedRead } from '../shared-read.ts'
import type { CherryClient } from './client.ts'
import type { Project } from './model.ts'

/** The project, which hardly changes. */
export interface Projects {
  get(call: Call, options?: { fresh?: boolean }): Promise<Project>
  forget(): Promise<void>
}

const MAX_AGE_MS = 30_000

export function createProjects(options: {
  client: CherryClient
  redis?: Redis
  prefix: string
  projectId: number
}): Projects {
  const { client, redis, prefix, projectId } = options
  const shared = createSharedRead<Project>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:cherry:v1:project:${client.account()}`,
    maxAgeMs: MAX_AGE_MS,
    async fetch(call) {
      const project = await client.project.get(call)
      if (project) return project
      throw permanent(`Cherry Servers has no project ${projectId} for this API key: check CHERRY_PROJECT_ID.`, {
        status: 404,
      })
    },
  })
  return { get: (call, { fresh } = {}) => (fresh ? shared.fresh(call) : shared.get(call)), forget: shared.forget }
}
