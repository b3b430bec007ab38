/** Idempotency keys are kept in generations of twelve hours that are dropped as a whole. A key is honoured for at least 24 hours. */
const GENERATION_MS = 12 * 3600 * 1000
export const KEPT_GENERATIONS = 3

export function generationAt(time: number): number {
  return Math.floor(time / GENERATION_MS)
}
