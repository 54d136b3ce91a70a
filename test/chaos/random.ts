/** A repeatable source of chance (mulberry32). */
export function random(seed: number) {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const between = (least: number, most: number) => least + next() * (most - least)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)] as T
  function shuffle<T>(items: readonly T[]): T[] {
    const rest = [...items]
    return items.map(() => rest.splice(Math.floor(next() * rest.length), 1)[0] as T)
  }
  return { between, pick, shuffle }
}
