import { readFileSync } from 'node:fs'

/** As package.json has it. */
export const VERSION = readVersion()

function readVersion(): string {
  const description: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return typeof description === 'object' && description !== null && 'version' in description
    ? String(description.version)
    : 'unknown'
}
