/** The cost of protection: deliveries per second with the default policy, and with a policy whose protection is off. */
import type { PolicyInput } from "../../src/index.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { cpuMsEach, race } from "../harness/rounds.ts"
import { medianRatio } from "../harness/statistics.ts"

const OFF = { breaker: false, budget: false, adaptive: false, autoDisable: false } satisfies PolicyInput

async function measure(bench: Bench): Promise<Values> {
  const library = await Library.open(bench.receiver)
  try {
    const on = await library.traffic("on", 100)
    const off = await library.traffic("off", 100, () => ({ retry: { delays: [5], maxAttempts: 10, ...OFF } }))
    const rounds = await race(
      { on: (count) => on.run(count), off: (count) => off.run(count) },
      { ...bench.turns, rounds: 10, mostMs: Number.POSITIVE_INFINITY },
    )
    return {
      ...compared("protection", rounds.on, "off", rounds.off),
      // The same in processor time, which a busy machine disturbs less.
      "protection.cpuRatio": medianRatio(cpuMsEach(rounds.off), cpuMsEach(rounds.on)),
    }
  } finally {
    await library.close()
  }
}

export const protectionPart: Part = { names: ["protection.ratio"], isAside: true, run: measure }
