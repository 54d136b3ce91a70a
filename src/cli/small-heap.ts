import { setFlagsFromString } from 'node:v8'

/**
 * Makes V8 prefer a small heap to speed, for processes that share a node with others' work. With 1,000 nodes the forwarder takes 80 MB this way
 * and 100 MB without (`node test/forwarder/memory.ts`); `all` takes 180 MB and a tenth more CPU while 500 nodes join, 320 MB without (`npm run bench`).
 * @param newSpaceMb room for young objects: the more, the less often they are collected
 */
export function keepHeapSmall(newSpaceMb: number): void {
  setFlagsFromString('--optimize-for-size')
  setFlagsFromString(`--max-semi-space-size=${newSpaceMb}`)
  setFlagsFromString('--semi-space-growth-factor=1')
}
