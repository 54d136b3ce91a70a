import { readdirSync } from 'node:fs'
import { messageOf } from '../errors.ts'
import type { Parsed } from './grammar.ts'
import { readFile } from './read-file.ts'

type Mapping = Record<string, unknown>

/** A YAML file that holds a mapping; an empty one is empty. Faults never quote the file, which may hold secrets. */
export async function readYaml(path: string): Promise<Parsed<Mapping>> {
  const content = readText(path)
  if ('fault' in content) return content
  const { LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  // Every scalar stays the text that was written, for the parsers of the table: a token may look like a number.
  const document = parseDocument(content.value, {
    schema: 'failsafe',
    customTags: (tags) => [...tags, 'null'],
    prettyErrors: false,
    lineCounter,
  })
  const [error] = document.errors
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0])
    return {
      fault: `is not valid YAML at line ${line}, column ${col} (${error.code.toLowerCase().replaceAll('_', ' ')})`,
    }
  }
  try {
    return mappingOf(document.toJS() ?? {})
  } catch {
    return { fault: 'has aliases that lead nowhere or to too much' }
  }
}

/** A JSON file that holds an object. */
export function readJson(path: string): Parsed<Mapping> {
  const content = readText(path)
  if ('fault' in content) return content
  try {
    return mappingOf(JSON.parse(content.value))
  } catch (error) {
    // Only the position: what the parser says quotes the file.
    const position = /position (\d+)/.exec(messageOf(error))?.[1]
    const line = position === undefined ? undefined : content.value.slice(0, Number(position)).split('\n').length
    return { fault: line === undefined ? 'is not valid JSON' : `is not valid JSON at line ${line}` }
  }
}

/** The fault of a directory that is to be looked into, if it has one. */
export function faultOfDirectory(path: string): string | undefined {
  try {
    readdirSync(path)
    return undefined
  } catch (error) {
    return `can't be read (${codeOf(error)})`
  }
}

/** The fault of a file of certificates, if it has one. */
export function faultOfCertificates(path: string): string | undefined {
  const content = readText(path)
  if ('fault' in content) return content.fault
  return content.value.includes('-----BEGIN CERTIFICATE-----') ? undefined : 'holds no PEM certificate'
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `ENOENT` and the like. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}

function readText(path: string): Parsed<string> {
  try {
    return { value: readFile(path).toString() }
  } catch (error) {
    return {
      fault: `can't be read (${error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)})`,
    }
  }
}

function mappingOf(value: unknown): Parsed<Mapping> {
  return isMapping(value) ? { value } : { fault: 'does not hold keys and values' }
}
