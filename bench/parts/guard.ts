/**
 * The cost of the egress guard: deliveries per second with it, and with a guard that allows everything. Both use a URL with an IP address:
 * a lookup is the network's time, and its result is cached.
 */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { plainTransport } from "../harness/plain-transport.ts"
import { cpuMsEach, race } from "../harness/rounds.ts"
import { medianRatio } from "../harness/statistics.ts"

async function measure(bench: Bench): Promise<Values> {
  const guarded = await Library.open(bench.receiver)
  const plain = await Library.open(bench.receiver, {}, { transport: plainTransport() })
  try {
    const [throughGuard, past] = [await guarded.traffic("app", 100), await plain.traffic("app", 100)]
    const rounds = await race(
      { guarded: (count) => throughGuard.run(count), plain: (count) => past.run(count) },
      { ...bench.turns, rounds: bench.size(16, 4) },
    )
    return {
      ...compared("guard", rounds.guarded, "plain", rounds.plain),
      // The same in processor time, which a busy machine disturbs less.
      "guard.cpuRatio": medianRatio(cpuMsEach(rounds.plain), cpuMsEach(rounds.guarded)),
    }
  } finally {
    await guarded.close()
    await plain.close()
  }
}

export const guardPart: Part = { names: ["guard.ratio"], isAside: true, run: measure }
