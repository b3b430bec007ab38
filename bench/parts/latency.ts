/** Latency from the due time of a send to the receiver at a fixed rate: idle, and at half of the capacity. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { Library, type Traffic } from "../harness/library.ts"
import { openLoop } from "../harness/open-loop.ts"
import { perSecond, race } from "../harness/rounds.ts"
import { median, percentile } from "../harness/statistics.ts"

export const IDLE_PER_SECOND = 20
/**
 * The time of a full run at half of the capacity. The virtual machine of the results stops now and then for 27 to 45 ms, which makes a tenth
 * of a second late: in a run of ten seconds, that is the whole slowest hundredth.
 */
export const HALF_SECONDS = 30

async function measure(bench: Bench): Promise<Values> {
  const library = await Library.open(bench.receiver)
  try {
    const traffic = await library.traffic("app", 100)
    const capacity = await measureCapacity(bench, traffic)
    const send = (ordinal: number) => traffic.send(ordinal)
    const idle = await latencies(bench, send, IDLE_PER_SECOND, bench.size(10, 1.2))
    const half = await latencies(bench, send, capacity / 2, bench.size(HALF_SECONDS, 1))
    const quiet = await quietLatencies(bench, library)
    return {
      "latency.idle.p50ms": percentile(idle, 50),
      "latency.idle.p99ms": percentile(idle, 99),
      "latency.idle.quietP50ms": percentile(quiet, 50),
      "latency.half.p50ms": percentile(half, 50),
      "latency.half.p99ms": percentile(half, 99),
      "latency.half.perSecond": capacity / 2,
      "latency.capacityPerSecond": capacity,
    }
  } finally {
    await library.close()
  }
}

/** Deliveries per second of senders that wait only for `send`. */
export async function measureCapacity(bench: Bench, traffic: Traffic): Promise<number> {
  const { rounds } = await race({ rounds: (count) => traffic.run(count) }, bench.turns)
  return median(perSecond(rounds))
}

/** Each message goes to an endpoint of its own, whose lane is not open: a used lane stays open for 10 s. */
async function quietLatencies(bench: Bench, library: Library): Promise<Float64Array> {
  const seconds = bench.size(10, 0.4)
  const traffic = await library.traffic("quiet", IDLE_PER_SECOND * seconds)
  return latencies(bench, (ordinal) => traffic.send(ordinal), IDLE_PER_SECOND, seconds)
}

/** Of each message, from its due time to its receipt. */
export async function latencies(
  bench: Bench,
  sendOrdinal: (ordinal: number) => Promise<unknown>,
  rate: number,
  seconds: number,
): Promise<Float64Array> {
  const count = Math.round(rate * seconds)
  const expected = await bench.receiver.expect(count, { timed: true })
  const send = (i: number) => sendOrdinal(expected.from + i)
  const scheduled = await openLoop({ perSecond: rate, count, send })
  const { tally } = await expected.complete()
  return tally.times!.map((at, i) => at - scheduled[i]!)
}

export const latencyPart: Part = {
  names: ["latency.idle.p50ms", "latency.idle.quietP50ms", "latency.half.p99ms"],
  run: measure,
}
