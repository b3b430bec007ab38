/** Two contenders in numbers: a ratio, and what it was made from. */
import type { Values } from "./bench.ts"
import { perSecond, type Round } from "./rounds.ts"
import { median, medianRatio } from "./statistics.ts"

/** As `name.ratio`, `name.perSecond` and, for the one that it is compared with, such as `bare`, `name.barePerSecond`. */
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
