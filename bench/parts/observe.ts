/** The cost of observing: deliveries per second with metrics, with traces, and without. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { cpuMsEach, race } from "../harness/rounds.ts"
import { medianRatio } from "../harness/statistics.ts"
import { exportTraces } from "../harness/traces.ts"

/** Of the traces. */
const SAMPLED = 0.01

async function measure(bench: Bench): Promise<Values> {
  const traces = await exportTraces(SAMPLED)
  const off = await Library.open(bench.receiver)
  const metrics = await Library.open(bench.receiver, { metrics: true })
  const tracing = await Library.open(bench.receiver, { tracing: true })
  try {
    const without = await off.traffic("app", 100)
    const measured = await metrics.traffic("app", 100)
    const traced = await tracing.traffic("app", 100)
    const rounds = await race(
      {
        metrics: (count) => measured.run(count),
        traces: (count) => traced.run(count),
        off: (count) => without.run(count),
      },
      { ...bench.turns, rounds: 10, mostMs: Number.POSITIVE_INFINITY },
    )
    return {
      ...compared("observe.metrics", rounds.metrics, "off", rounds.off),
      ...compared("observe.traces", rounds.traces, "off", rounds.off),
      // The same in processor time, which a busy machine disturbs less.
      "observe.metrics.cpuRatio": medianRatio(cpuMsEach(rounds.off), cpuMsEach(rounds.metrics)),
      "observe.traces.cpuRatio": medianRatio(cpuMsEach(rounds.off), cpuMsEach(rounds.traces)),
      "observe.traces.batches": traces.batches(),
    }
  } finally {
    await tracing.close()
    await metrics.close()
    await off.close()
    await traces.close()
  }
}

export const observePart: Part = {
  names: ["observe.metrics.ratio", "observe.traces.ratio"],
  isAside: true,
  run: measure,
}
