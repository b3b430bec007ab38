/** The cost of observing: deliveries per second with metrics, and without. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { cpuMsEach, race } from "../harness/rounds.ts"
import { medianRatio } from "../harness/statistics.ts"

async function measure(bench: Bench): Promise<Values> {
  const off = await Library.open(bench.receiver)
  const metrics = await Library.open(bench.receiver, { metrics: true })
  try {
    const [without, measured] = [await off.traffic("app", 100), await metrics.traffic("app", 100)]
    const rounds = await race(
      { metrics: (count) => measured.run(count), off: (count) => without.run(count) },
      { ...bench.turns, rounds: 10, mostMs: Number.POSITIVE_INFINITY },
    )
    return {
      ...compared("observe.metrics", rounds.metrics, "off", rounds.off),
      // The same in processor time, which a busy machine disturbs less.
      "observe.metrics.cpuRatio": medianRatio(cpuMsEach(rounds.off), cpuMsEach(rounds.metrics)),
    }
  } finally {
    await metrics.close()
    await off.close()
  }
}

export const observePart: Part = { names: ["observe.metrics.ratio"], isAside: true, run: measure }
