/** The time from a failing response until its retry is written, at half of the capacity. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { sharedNow } from "../harness/clock.ts"
import { Library, type Traffic } from "../harness/library.ts"
import { openLoop } from "../harness/open-loop.ts"
import { percentile } from "../harness/statistics.ts"
import { inTime, VoidRun } from "../harness/void.ts"
import { HALF_SECONDS, measureCapacity } from "./latency.ts"

const FAILING_ENDPOINTS = 20
/** One message in this number goes to an endpoint that responds with 500. */
const FAILING_SHARE = 10
/** The second attempt is due long after the measurement. */
const RETRY = { delays: [3600], maxAttempts: 2, breaker: false } as const

async function measure(bench: Bench): Promise<Values> {
  const library = await Library.open(bench.receiver)
  try {
    const healthy = await library.traffic("app", 100)
    const url = `${bench.receiver.origin}/fail`
    const failing = await library.traffic("failing", FAILING_ENDPOINTS, () => ({ url, retry: RETRY }))
    const perSecond = (await measureCapacity(bench, healthy)) / 2
    const run = (seconds: number) => fail(bench, library, { healthy, failing, perSecond, seconds })
    // The code of failures is compiled in the first second; the rest was compiled while the capacity was measured.
    await run(bench.size(1, 0.2))
    const tookMs = await run(bench.size(HALF_SECONDS, 1))
    return {
      "retry.settle.p99ms": percentile(tookMs, 99),
      "retry.settle.p50ms": percentile(tookMs, 50),
      "retry.settle.failures": tookMs.length,
      "retry.settle.perSecond": perSecond,
    }
  } finally {
    await library.close()
  }
}

interface Load {
  readonly healthy: Traffic
  readonly failing: Traffic
  readonly perSecond: number
  readonly seconds: number
}

/** The time until each failure was written. */
async function fail(bench: Bench, library: Library, load: Load): Promise<number[]> {
  const { healthy, failing, perSecond } = load
  const count = Math.round((perSecond * load.seconds) / FAILING_SHARE) * FAILING_SHARE
  const isFailing = (i: number) => i % FAILING_SHARE === 0
  /** The ids of the failing messages. */
  const ids: string[] = []
  const written = collectWritten(library, count / FAILING_SHARE)
  const expected = await bench.receiver.expect(count, { timed: true })
  await openLoop({
    perSecond,
    count,
    // Spreads messages over all failing endpoints: the ordinal alone would choose only some of them.
    send: async (i) => {
      const traffic = isFailing(i) ? failing : healthy
      const { id } = await traffic.send(expected.from + i, isFailing(i) ? i / FAILING_SHARE : i)
      if (isFailing(i)) ids[i / FAILING_SHARE] = id
    },
  })
  const { tally } = await expected.complete()
  const writtenAt = await inTime(written, () => "failures were not written")
  const tookMs = ids.map((id, i) => writtenAt.get(id)! - tally.times![i * FAILING_SHARE]!)
  if (tookMs.some(Number.isNaN)) throw new VoidRun("a failure was written for a message that was not sent")
  return tookMs
}

/** The time at which each failure was committed, by message: the event is published after the commit. */
function collectWritten({ posthorn }: Library, failures: number): Promise<Map<string, number>> {
  const writtenAt = new Map<string, number>()
  return new Promise((resolve) => {
    const stop = posthorn.on("delivery.attempt", ({ success, message_id }) => {
      if (success) return
      writtenAt.set(message_id, sharedNow())
      if (writtenAt.size < failures) return
      stop()
      resolve(writtenAt)
    })
  })
}

export const retryPart: Part = { names: ["retry.settle.p99ms"], run: measure }
