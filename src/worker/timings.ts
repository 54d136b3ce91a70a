/** Milliseconds, unless the name says otherwise. */
export interface Timings {
  /** A job whose lock was not renewed for so long counts as its worker's death. */
  lockMs: number
  renewMs: number
  /** Between looks for such jobs. */
  stalledMs: number
  /** How long to wait for work in one go; bounds how late a wake-up is that another process took and did not use. */
  blockMs: number
  /** Between looks for objects that are due while no job stands for them. */
  sweepMs: number
  floorMs: number
  /** A run that takes longer is told to stop, and tried again. */
  overrunMs: number
  /** A job whose worker died more often than this while running it counts as the cause. */
  maxStalls: number
}

export const TIMINGS: Timings = {
  lockMs: 5000,
  renewMs: 2000,
  stalledMs: 1000,
  blockMs: 2000,
  sweepMs: 2000,
  floorMs: 1000,
  overrunMs: 900_000,
  maxStalls: 10,
}
