/** Instruments that never throw: the error of an exporter is logged, and neither a slot nor a delivery is lost by it. */
import { type Instruments, NO_INSTRUMENTS } from "./instruments.ts"
import type { Logger } from "./log.ts"

const QUIET_MS = 60_000

type Measure = (...args: unknown[]) => unknown

/** A method that throws returns what it returns without a recorder. */
export function withoutThrows(instruments: Instruments, logger: Logger): Instruments {
  const complain = complainer(logger)
  const guarded = (name: keyof Instruments): Measure => {
    const measure = instruments[name] as Measure
    const fallback = NO_INSTRUMENTS[name] as Measure
    return (...args) => {
      try {
        return measure.apply(instruments, args)
      } catch (error) {
        complain(name, error)
        return fallback()
      }
    }
  }
  const names = Object.keys(NO_INSTRUMENTS) as (keyof Instruments)[]
  return Object.fromEntries(names.map((name) => [name, guarded(name)])) as unknown as Instruments
}

/** An exporter that throws may do so thousands of times a second: one line a minute. */
function complainer(logger: Logger): (name: string, error: unknown) => void {
  let toldAt = Number.NEGATIVE_INFINITY
  return (name, err) => {
    if (performance.now() - toldAt < QUIET_MS) return
    toldAt = performance.now()
    logger.error({ err, measurement: name }, "A measurement threw")
  }
}
