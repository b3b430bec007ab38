/** The effect of one endpoint that hangs on 99 others: their latency with it, and with a hundredth that responds. */
import type { Bench, Part, Values } from "../harness/bench.ts"
import { eventType, Library, type Traffic } from "../harness/library.ts"
import { openLoop } from "../harness/open-loop.ts"
import { byTurns } from "../harness/rounds.ts"
import { median, medianRatio, percentile } from "../harness/statistics.ts"
import { VoidRun } from "../harness/void.ts"

const ENDPOINTS = 100
const HUNG = 99
const PER_SECOND = 1000
const FIRST_FOR_HUNG = 100

async function measure(bench: Bench): Promise<Values> {
  const [beside, without] = [await Library.open(bench.receiver), await Library.open(bench.receiver)]
  try {
    const hanging = { url: `${bench.receiver.origin}/hang` }
    const traffic = {
      beside: await beside.traffic("app", ENDPOINTS, (i) => (i === HUNG ? hanging : {})),
      without: await without.traffic("app", ENDPOINTS),
    }
    await beginToHang(bench, beside)
    const windows = await byTurns(
      {
        beside: () => window(bench, traffic.beside, true),
        without: () => window(bench, traffic.without, false),
      },
      { ...bench.turns, warmups: 1, mostMs: bench.size(30_000, 1800) },
    )
    const [besideHung, alone] = [windows.beside.map(p99), windows.without.map(p99)]
    return {
      "isolation.p99ratio": medianRatio(besideHung, alone),
      "isolation.besideHungP99ms": median(besideHung),
      "isolation.withoutP99ms": median(alone),
      "isolation.togetherRatio": p99(windows.beside.flatMap(list)) / p99(windows.without.flatMap(list)),
      "isolation.perSecond": PER_SECOND,
    }
  } finally {
    await beside.close()
    await without.close()
  }
}

/** The endpoint hangs, with deliveries queued, before the first window. */
async function beginToHang(bench: Bench, { posthorn }: Library): Promise<void> {
  const expected = await bench.receiver.expect(0)
  for (let i = 0; i < FIRST_FOR_HUNG; i++)
    await posthorn.send("app", { eventType: eventType(HUNG), payload: {} })
  for (let tries = 0; (await expected.books()).tally.hung === 0; tries++)
    if (tries === 10_000) throw new VoidRun("the endpoint that hangs was sent nothing")
}

/** The latencies of the 99 endpoints over some seconds, in milliseconds. */
async function window(bench: Bench, traffic: Traffic, hangs: boolean): Promise<Float64Array> {
  const count = PER_SECOND * bench.size(2, 0.2)
  const arrivals = hangs ? count - count / ENDPOINTS : count
  const expected = await bench.receiver.expect(count, { arrivals, timed: true })
  const send = (i: number) => traffic.send(expected.from + i)
  const scheduled = await openLoop({ perSecond: PER_SECOND, count, send })
  const { tally } = await expected.complete()
  const latenciesMs = tally.times!.map((at, i) => at - scheduled[i]!)
  return latenciesMs.filter((_, i) => (expected.from + i) % ENDPOINTS !== HUNG)
}

function p99(latenciesMs: Iterable<number>): number {
  return percentile(latenciesMs, 99)
}

const list = (latenciesMs: Float64Array) => [...latenciesMs]

export const isolationPart: Part = { names: ["isolation.p99ratio"], run: measure }
