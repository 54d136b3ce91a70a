import { closeSync, openSync, readSync } from 'node:fs'

/** More than any kubeconfig, bundle of certificates or table of clusters has. */
const MAX_BYTES = 8 * 1024 * 1024

/** The content of a file that a setting names: also of a pipe, but never without an end, as a device has. Throws. */
export function readFile(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    const parts: Buffer[] = []
    for (let total = 0; ; ) {
      const part = Buffer.alloc(64 * 1024)
      const length = readSync(file, part)
      if (length === 0) return Buffer.concat(parts)
      total += length
      if (total > MAX_BYTES) throw Object.assign(new Error('it holds more than 8 MiB'), { code: 'more than 8 MiB' })
      parts.push(part.subarray(0, length))
    }
  } finally {
    closeSync(file)
  }
}
