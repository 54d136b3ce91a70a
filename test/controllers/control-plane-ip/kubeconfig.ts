import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Path of a file with this kubeconfig, gone with the test. */
export function kubeconfigFile(t: Test, text: string): string {
  const path = join(t.testdir({}), 'kubeconfig')
  writeFileSync(path, text)
  return path
}
