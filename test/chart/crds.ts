import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'yaml'
import { go } from '../../infra/go-cache.ts'
import type { Admin, Json } from '../apiserver/admin.ts'

export const KEDA = 'github.com/kedacore/keda/v2@v2.21.0'
export const PROMETHEUS = 'github.com/prometheus-operator/prometheus-operator@v0.85.0'

/** Folder of a Go module's own files, taken from Go's module proxy unless Go has it already. */
export async function moduleDir(module: string): Promise<string> {
  const { Dir, Error: error } = JSON.parse(await go(['mod', 'download', '-json', module], { cwd: tmpdir() })) as Json
  if (typeof Dir !== 'string') throw new Error(`${module}: ${error}`)
  return Dir
}

/** Definitions of kinds as their projects publish them. Resolves when the API server serves these kinds. */
export async function defineKinds(admin: Admin, module: string, files: readonly string[]): Promise<void> {
  const dir = await moduleDir(module)
  for (const file of files) {
    const definition = parse(readFileSync(join(dir, file), 'utf8')) as Json
    const { name } = definition.metadata
    await admin.create('CustomResourceDefinition', undefined, definition)
    const established = async () => {
      const { status } = await admin.get('CustomResourceDefinition', undefined, name)
      return status?.conditions?.some(({ type, status }: Json) => type === 'Established' && status === 'True')
    }
    while (!(await established())) await delay(50)
  }
}
