/** The numbers of two contenders: their ratio, and the values from which it is computed. */
import type { Values } from "./bench.ts"
import { perSecond, type Round } from "./rounds.ts"
import { median, medianRatio } from "./statistics.ts"

/** `name.ratio`, `name.perSecond` and, for a comparison with `bare`, `name.barePerSecond`. */
export function compared(
  name: string,
  ours: readonly Round[],
  other: string,
  others: readonly Round[],
): Values {
  const [one, two] = [ours, others].map(perSecond)
  return {
    [`${name}.ratio`]: medianRatio(one!, two!),
    [`${name}.perSecond`]: median(one!),
    [`${name}.${other}PerSecond`]: median(two!),
  }
}
