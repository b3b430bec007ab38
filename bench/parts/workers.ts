/** One, two and four worker processes on one PostgreSQL: their throughput, and that no message is delivered twice. */
import { Program } from "../../test/support/process.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { sharedNow } from "../harness/clock.ts"
import { Library } from "../harness/library.ts"
import { builtFile } from "../harness/package.ts"
import type { Expected } from "../harness/receiver.ts"
import { CONNECTIONS, EGRESS, NODE_OPTIONS } from "../harness/settings.ts"
import { VoidRun } from "../harness/void.ts"

const READY = /worker \d+ delivers from/
const BATCH = 500
const COUNTS = { one: 1, two: 2, four: 4 }

async function measure(bench: Bench): Promise<Values> {
  const store = await bench.servers.database("workers")
  const main = await builtFile("cli/main.js")
  const library = await Library.open(bench.receiver, { store, deliver: false })
  const values: { [name: string]: number } = {}
  const workers: Program[] = []
  let last: Expected | null = null
  try {
    for (const [name, count] of Object.entries(COUNTS)) {
      const more = Array.from({ length: count - workers.length }, () => startWorker(main, store))
      workers.push(...more)
      await Promise.all(more.map((worker) => worker.line(READY)))
      const drained = await drain(bench, library)
      values[`workers.${name}.perSecond`] = drained.perSecond
      last = drained.expected
    }
  } finally {
    for (const worker of workers) worker.process.kill("SIGTERM")
    await Promise.all(workers.map((worker) => worker.ended))
    await library.close()
  }
  const scaling = values["workers.four.perSecond"]! / values["workers.one.perSecond"]!
  // After an expired lease, another worker sends a message again, perhaps after the last one has come.
  const { requests, distinct } = (await last!.books()).tally
  return { "workers.scaling": scaling, "workers.duplicates": requests - distinct, ...values }
}

function startWorker(main: URL, store: string): Program {
  const limits = ["--concurrency", `${CONNECTIONS}`, "--egress-allow", EGRESS.allow.join(",")]
  return Program.start(main, ["worker", "--store", store, ...limits], { nodeOptions: NODE_OPTIONS })
}

/** Deliveries per second. All were accepted before, and become due at the same time. */
async function drain(bench: Bench, library: Library): Promise<{ perSecond: number; expected: Expected }> {
  const warmedAt = sharedNow()
  const first = await sendAll(bench, library, BATCH, 0)
  const batchMs = sharedNow() - warmedAt
  await first.complete()
  const total = bench.size(20_000, 1000)
  // 1.5 times the expected time, by the speed of the first messages.
  const dueInMs = 200 + 1.5 * batchMs * (total / BATCH)
  const dueAt = sharedNow() + dueInMs
  const expected = await sendAll(bench, library, total, dueInMs)
  if (sharedNow() > dueAt) throw new VoidRun("messages came due before all were accepted")
  const { tally } = await expected.complete()
  return { perSecond: total / ((tally.lastAt - dueAt) / 1000), expected }
}

async function sendAll(bench: Bench, library: Library, total: number, dueInMs: number): Promise<Expected> {
  const traffic = await library.traffic("app", 100)
  const expected = await bench.receiver.expect(total)
  const deliverAt = Date.now() + dueInMs
  for (let from = expected.from; from < expected.from + total; from += BATCH) {
    const message = (_: unknown, i: number) => ({ ...traffic.message(from + i), deliverAt })
    await library.posthorn.sendBatch("app", Array.from({ length: BATCH }, message))
  }
  return expected
}

export const workersPart: Part = { names: ["workers.scaling"], run: measure }
