/** A start with a million overdue deliveries: the time to the first delivery, and the memory while they are delivered. */
import { once } from "node:events"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { Program } from "../../test/support/process.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { sharedNow } from "../harness/clock.ts"
import { rowsIn } from "../harness/figures.ts"
import { fill } from "../harness/fill.ts"
import { Library, temporaryFolder } from "../harness/library.ts"
import { builtFile } from "../harness/package.ts"
import { EGRESS, NODE_OPTIONS } from "../harness/settings.ts"
import { median } from "../harness/statistics.ts"
import { VoidRun } from "../harness/void.ts"

const ENDPOINTS = 100
const YEAR_MS = 365 * 86_400_000
const CHILD = new URL("../children/drain.js", import.meta.url)

/** The output of the program. */
interface Drained {
  /** The time of the call of `openPosthorn`, on the shared clock. */
  readonly openedAt: number
  readonly delivered: number
  readonly peakRssMb: number
}

/** A file with overdue deliveries: its path, their number and that of the first message, and the package that opens it. */
interface Overdue {
  readonly index: URL
  readonly path: string
  readonly first: number
  readonly rows: number
}

interface Start extends Drained {
  readonly fromOpenMs: number
  readonly fromProcessMs: number
}

async function measure(bench: Bench): Promise<Values> {
  const rows = rowsIn(bench.quick)
  const index = await builtFile("index.js")
  const folder = temporaryFolder()
  try {
    const path = join(folder, "overdue.db")
    // Only the last run is long. The first fills Node's compile cache, as in an installed package.
    const drainsMs = bench.quick ? [0, 1000] : [1000, 1000, 1000, 10_000]
    const first = await makeOverdue(bench, path, rows)
    const overdue = { index, path, first, rows }
    const starts: Start[] = []
    for (const drainMs of drainsMs) starts.push(await start(bench, overdue, drainMs))
    const counted = starts.slice(1)
    const last = counted.at(-1)!
    const longestMs = drainsMs.at(-1)!
    const bounded = await start(bench, overdue, longestMs, NODE_OPTIONS)
    return {
      "start.firstDeliveryMs": median(counted.map(({ fromOpenMs }) => fromOpenMs)),
      "start.fromProcessMs": median(counted.map(({ fromProcessMs }) => fromProcessMs)),
      "start.overdueRows": rows,
      "start.drainedPerSecond": last.delivered / (longestMs / 1000),
      "memory.rssMb": last.peakRssMb,
      "memory.boundedRssMb": bounded.peakRssMb,
      ...(process.platform === "linux" && { "memory.serveRssMb": await serve(bench, overdue, longestMs) }),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The number of the first message. */
async function makeOverdue(bench: Bench, path: string, rows: number): Promise<number> {
  const library = await Library.open(bench.receiver, { store: `sqlite:${path}` })
  const traffic = await library.traffic("app", ENDPOINTS)
  const { from } = await bench.receiver.expect(rows)
  const deliverAt = Date.now() + YEAR_MS
  await library.posthorn.sendBatch(
    "app",
    Array.from({ length: ENDPOINTS }, (_, i) => ({ ...traffic.message(i), deliverAt })),
  )
  await library.close()
  fill(path, [
    { of: "waiting", count: rows, firstOrdinal: from, delivery: { next_retry_at: "t.received_at" } },
  ])
  return from
}

async function start(
  bench: Bench,
  { index, path, first, rows }: Overdue,
  drainMs: number,
  nodeOptions: readonly string[] = [],
): Promise<Start> {
  const expected = await bench.receiver.expect(rows, { from: first, arrivals: rows })
  const startedAt = sharedNow()
  const args = [index.href, `sqlite:${path}`, `${drainMs}`, JSON.stringify(EGRESS)]
  const program = Program.start(CHILD, args, { talks: true, nodeOptions })
  const ended = program.ended.then(() => {
    throw new Error(`the program that drains ended:\n${program.stderr}`)
  })
  const [drained] = (await Promise.race([once(program.process, "message"), ended])) as [Drained]
  await program.kill()
  const { tally } = await expected.books()
  const { distinct, requests } = tally
  if (distinct !== drained.delivered || requests !== distinct)
    throw new VoidRun(`${drained.delivered} were settled, ${distinct} of ${requests} requests arrived`)
  return {
    ...drained,
    fromOpenMs: tally.firstAt - drained.openedAt,
    fromProcessMs: tally.firstAt - startedAt,
  }
}

/** The most memory of `posthorn serve` without an option of Node, as `npx posthorn` starts it, while it delivers. */
async function serve(bench: Bench, { path, first, rows }: Overdue, drainMs: number): Promise<number> {
  const expected = await bench.receiver.expect(rows, { from: first, arrivals: rows })
  const args = ["--store", `sqlite:${path}`, "--port", "0", "--egress-allow", EGRESS.allow.join(",")]
  const program = Program.start(await builtFile("cli/main.js"), ["serve", ...args])
  await program.line(/server \d+ listens on/)
  await setTimeout(drainMs)
  const status = readFileSync(`/proc/${program.process.pid}/status`, "utf8")
  await program.kill()
  await expected.books()
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) / 1024
}

export const startPart: Part = { names: ["start.firstDeliveryMs", "memory.rssMb"], run: measure }
