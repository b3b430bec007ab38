/** The effect of 900 endpoints that fail on 100 others: the latency of these with them, and without. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { Library, type Traffic } from "../harness/library.ts"
import { openLoop } from "../harness/open-loop.ts"
import { Receiver } from "../harness/receiver.ts"
import { byTurns } from "../harness/rounds.ts"
import { median, medianRatio, percentile } from "../harness/statistics.ts"

const HEALTHY = 100
const FAILING = 900
const PER_SECOND = 500
/** Retries come within the window, until the breaker opens. */
const RETRY = { delays: [0.5], maxAttempts: 1000 }

async function measure(bench: Bench): Promise<Values> {
  // A receiver of its own, whose repeated requests are in no book.
  const down = await Receiver.start()
  const [beside, without] = [await Library.open(bench.receiver), await Library.open(bench.receiver)]
  try {
    const url = `${down.origin}/fail`
    const failing = await beside.traffic("failing", FAILING, () => ({ url, retry: RETRY }))
    const healthy = {
      beside: await beside.traffic("app", HEALTHY),
      without: await without.traffic("app", HEALTHY),
    }
    const windows = await byTurns(
      {
        beside: async () => {
          await Promise.all(Array.from({ length: FAILING }, (_, i) => failing.send(i)))
          return window(bench, healthy.beside)
        },
        without: () => window(bench, healthy.without),
      },
      { ...bench.turns, warmups: 1, mostMs: bench.size(60_000, 4000) },
    )
    return {
      "protection.p99ratio": medianRatio(windows.beside, windows.without),
      "protection.besideFailingP99ms": median(windows.beside),
      "protection.withoutP99ms": median(windows.without),
    }
  } finally {
    await beside.close()
    await without.close()
    await down.close()
  }
}

/** The p99 latency of some seconds, in milliseconds. */
async function window(bench: Bench, traffic: Traffic): Promise<number> {
  const count = PER_SECOND * bench.size(2, 0.4)
  const expected = await bench.receiver.expect(count, { timed: true })
  const scheduled = await openLoop({
    perSecond: PER_SECOND,
    count,
    send: (i) => traffic.send(expected.from + i),
  })
  const { tally } = await expected.complete()
  return percentile(
    tally.times!.map((at, i) => at - scheduled[i]!),
    99,
  )
}

export const failingNeighboursPart: Part = { names: ["protection.p99ratio"], isAside: true, run: measure }
