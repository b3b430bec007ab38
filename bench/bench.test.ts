/** Tests of the benchmark itself: statistics, ledger, receiver and report. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Pool } from "undici"
import { expect, onTestFinished, test } from "vitest"
import { Program } from "../test/support/process.ts"
import { BareLoop } from "./harness/bare-loop.ts"
import { measureCeiling } from "./harness/ceiling.ts"
import { figuresOf, isWithin } from "./harness/figures.ts"
import { fill } from "./harness/fill.ts"
import { Ledger, mistakeIn } from "./harness/ledger.ts"
import { Library, temporaryFolder } from "./harness/library.ts"
import { processorTime, stolenShare } from "./harness/machine.ts"
import { openLoop } from "./harness/open-loop.ts"
import { bodyOf, PAYLOAD_BYTES, readOrdinal, writeOrdinal } from "./harness/payload.ts"
import { prepareMessage } from "./harness/prepared.ts"
import { Receiver } from "./harness/receiver.ts"
import { type Report, toJson, toTable } from "./harness/report.ts"
import { byTurns } from "./harness/rounds.ts"
import { NODE_OPTIONS } from "./harness/settings.ts"
import { median, medianRatio, percentile } from "./harness/statistics.ts"
import { PARTS } from "./parts/all.ts"

const FIGURES = figuresOf(false)

async function startReceiver(): Promise<Receiver> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  return receiver
}

function startBench(args: readonly string[], under: readonly string[] = []): Program {
  return Program.start(new URL("./main.ts", import.meta.url), args, { under, nodeOptions: NODE_OPTIONS })
}

/** Posts a body to a path of the receiver and returns the status of the response. */
function posting(receiver: Receiver): (ordinal: number, path?: string) => Promise<number> {
  const pool = new Pool(receiver.origin)
  onTestFinished(() => pool.destroy())
  return async (ordinal, path = "/ok") => {
    const response = await pool.request({ path, method: "POST", body: bodyOf(ordinal) })
    await response.body.dump()
    return response.statusCode
  }
}

test("Node is run as by `npm start` and in the image", () => {
  const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8")
  const { start, bench } = JSON.parse(read("package.json")).scripts
  expect(start).toBe(`node ${NODE_OPTIONS.join(" ")} src/cli/main.ts serve`)
  expect(bench).toBe(`node ${NODE_OPTIONS.join(" ")} bench/main.ts`)
  const [, command] = /^ENTRYPOINT (.*)$/m.exec(read("Dockerfile"))!
  expect(JSON.parse(command!)).toEqual(["node", ...NODE_OPTIONS, "/app/dist/cli/main.js"])
})

test("other options are refused", async () => {
  const program = Program.start(new URL("./main.ts", import.meta.url), ["--quick"])
  expect(await program.ended).toMatchObject({ code: 2 })
  expect(program.stderr).toContain("use npm run bench")
})

test("a median is the middle, or between the two in the middle", () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 3, 2])).toBe(2.5)
})

test("a percentile is a measured value, and the hundredth is the highest", () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
  expect([50, 99, 100].map((percent) => percentile(hundred, percent))).toEqual([50, 99, 100])
  expect(percentile([7], 99)).toBe(7)
})

test("a disturbance of both neighbours does not change their ratio", () => {
  expect(medianRatio([10, 1, 10], [20, 2, 20])).toBe(0.5)
})

test("contenders alternate, each is first in turn, and warm-up rounds are not counted", async () => {
  const order: string[] = []
  const contender = (name: string) => async () => order.push(name)
  const results = await byTurns(
    { a: contender("a"), b: contender("b") },
    { warmups: 1, rounds: 2, mostMs: 1000 },
  )
  expect(order.join("")).toBe("baabba")
  expect(results).toEqual({ a: [3, 6], b: [4, 5] })
})

test("a payload has a kilobyte and its number, also when the number is replaced", () => {
  const body = bodyOf(12)
  expect(body).toHaveLength(PAYLOAD_BYTES)
  expect(readOrdinal(body, 0)).toBe(12)
  writeOrdinal(body, 98_765_432)
  expect(body).toEqual(bodyOf(98_765_432))
  expect(readOrdinal(Buffer.from("something of another shape"), 0)).toBeNaN()
})

test("every message has an idempotency key of its own, as from an SDK", () => {
  const posts = { origin: "http://127.0.0.1:1", path: "/", key: "key", endpoints: 1 }
  const { request, write } = prepareMessage({ ...posts, hasIdempotencyKey: true })
  const keys = [1, 2].map((ordinal) => {
    write(request, ordinal)
    return /^idempotency-key: auto_([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\r$/m.exec(
      request.toString(),
    )?.[1]
  })
  expect(keys).toEqual([expect.any(String), expect.any(String)])
  expect(keys[0]).not.toBe(keys[1])
  expect(prepareMessage(posts).request.toString()).not.toContain("idempotency-key")
})

test("the ledger counts missing and repeated messages and those of another round", () => {
  const ledger = new Ledger()
  ledger.expect({ from: 10, to: 13, arrivals: 3, timed: true })
  expect([10, 12, 10, 99].map((ordinal, at) => ledger.arrived(ordinal, at))).toEqual(Array(4).fill(false))
  const tally = ledger.tally()
  expect(tally).toMatchObject({ requests: 4, distinct: 2, duplicates: 1, strays: 1, firstAt: 0, lastAt: 1 })
  expect([...tally.times!]).toEqual([0, Number.NaN, 1])
  expect(mistakeIn(tally)).toBe("1 of 3 messages are missing, 1 came again, 1 requests were of another time")
  expect(ledger.arrived(11, 5)).toBe(true)
})

test("a message that comes after the books were read counts as one of another round", () => {
  const ledger = new Ledger()
  ledger.expect({ from: 0, to: 1, arrivals: 1, timed: false })
  ledger.arrived(0, 0)
  expect(mistakeIn(ledger.tally())).toBe(null)
  ledger.arrived(0, 1)
  ledger.expect({ from: 1, to: 2, arrivals: 1, timed: false })
  ledger.arrived(1, 2)
  expect(ledger.tally()).toMatchObject({ requests: 2, distinct: 1, strays: 1 })
  expect(mistakeIn(ledger.tally())).toBe("1 requests were of another time")
  ledger.expect({ from: 2, to: 3, arrivals: 0, timed: false })
  expect(mistakeIn(ledger.tally())).toBe(null)
})

test("the receiver's process waits for all messages, and a repeated message voids the run", async () => {
  const receiver = await startReceiver()
  const post = posting(receiver)
  const good = await receiver.expect(2, { timed: true })
  await Promise.all([post(good.from), post(good.from + 1, "/slow/1/")])
  const { tally } = await good.complete()
  expect(tally).toMatchObject({ requests: 2, distinct: 2, duplicates: 0 })
  expect(tally.times!.every((at) => at >= tally.firstAt && at <= tally.lastAt)).toBe(true)
  const bad = await receiver.expect(2)
  for (const ordinal of [bad.from, bad.from, bad.from + 1]) await post(ordinal)
  await expect(bad.complete()).rejects.toThrow("1 came again")
})

test("a message that comes again after its books were read is found at the end", async () => {
  const receiver = await startReceiver()
  const post = posting(receiver)
  const expected = await receiver.expect(1)
  await post(expected.from)
  await expected.complete()
  await receiver.checkNothingCame()
  await post(expected.from)
  await expect(receiver.checkNothingCame()).rejects.toThrow("1 requests were of another time")
})

test("a bare round near the receiver's ceiling is void, unless the ceiling was measured in a slow moment", async () => {
  const receiver = await startReceiver()
  let now = 1
  const loop = new BareLoop(receiver, 1, async () => now)
  onTestFinished(() => loop.close())
  await expect(loop.run(10)).rejects.toThrow("the receiver was the limit")
  now = 1e9
  await loop.run(10)
  expect([loop.ceilingPerSecond, loop.measuredAgain]).toEqual([now, 2])
})

test("the receiver's ceiling is measured with requests that are in its books", async () => {
  const receiver = await startReceiver()
  expect(await measureCeiling(receiver)).toBeGreaterThan(0)
})

test("the receiver fails and hangs on the paths for that", async () => {
  const receiver = await startReceiver()
  const post = posting(receiver)
  const expected = await receiver.expect(2, { arrivals: 1 })
  const hanging = post(expected.from, "/hang").catch(() => "cut off")
  expect(await post(expected.from + 1, "/fail")).toBe(500)
  await expected.complete()
  await expect.poll(async () => (await expected.books()).tally.hung).toBe(1)
  await receiver.close()
  expect(await hanging).toBe("cut off")
})

test("a send that blocks the loop makes the next ones late and moves no due time", async () => {
  const sentAt: number[] = []
  const scheduled = await openLoop({
    perSecond: 1000,
    count: 20,
    send: async (i) => {
      const until = performance.now() + (i === 5 ? 10 : 0)
      while (performance.now() < until);
      sentAt.push(performance.now())
    },
  })
  expect(sentAt).toHaveLength(20)
  expect(scheduled[19]! - scheduled[0]!).toBeCloseTo(19, 3)
})

test("a send that fails ends the loop with its error", async () => {
  const error = new Error("refused")
  const sent: number[] = []
  const send = async (i: number) => {
    sent.push(i)
    if (i === 3) throw error
  }
  await expect(openLoop({ perSecond: 100, count: 1000, send })).rejects.toBe(error)
  expect(sent.length).toBeLessThan(100)
})

test("a loop without messages ends at once", async () => {
  const send = () => Promise.reject(new Error("none was asked for"))
  expect(await openLoop({ perSecond: 100, count: 0, send })).toHaveLength(0)
})

test("the engine delivers the copies in a filled file", async () => {
  const receiver = await startReceiver()
  const folder = temporaryFolder()
  const store = `sqlite:${join(folder, "filled.db")}`
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const before = await Library.open(receiver, { store })
  const traffic = await before.traffic("app", 2)
  await traffic.run(2)
  const deliverAt = Date.now() + 3_600_000
  for (const i of [0, 1]) await before.posthorn.send("app", { ...traffic.message(i), deliverAt })
  await before.close()
  const expected = await receiver.expect(10)
  fill(join(folder, "filled.db"), [
    { of: "waiting", count: 10, firstOrdinal: expected.from, delivery: { next_retry_at: "t.received_at" } },
    { of: "delivered", count: 20, firstOrdinal: 1000 },
  ])
  const after = await Library.open(receiver, { store, closeTimeoutMs: 5000 })
  await expected.complete()
  await expect.poll(() => after.posthorn.deliveries.count({ status: "delivered" })).toBe(2 + 10 + 20)
  expect(await after.posthorn.deliveries.count({ status: "pending" })).toBe(2)
  await after.close()
})

test("every figure is measured by one part, and found by its name or a prefix", () => {
  expect(PARTS.flatMap(({ names }) => names).sort()).toEqual(FIGURES.map(({ name }) => name).sort())
  expect(isWithin("deliver.sqlite.ratio", "deliver")).toBe(true)
  expect(isWithin("deliver.sqlite.ratio", "del")).toBe(false)
})

const report: Report = {
  quick: true,
  seconds: 1,
  machine: "a machine",
  stolenShare: 0.0567,
  commit: null,
  versions: { node: "24" },
  values: { "deliver.sqlite.ratio": 0.39, "deliver.sqlite.one.perSecond": 12_345.6 },
  problems: [{ name: "peers.bullmq.ratio", kind: "void", reason: "1 came again" }],
}

test("steal time is reported for the time of the run only", () => {
  const from = { all: 1000, stolen: 900 }
  expect(stolenShare(from, { all: 1200, stolen: 910 })).toBe(0.05)
  expect(stolenShare(null, from)).toBeNull()
  const now = processorTime()
  expect(now === null || (now.all > now.stolen && now.stolen >= 0)).toBe(true)
})

test("in JSON the names are nested, and a void figure is null", () => {
  expect(toJson(report)).toMatchObject({
    quick: true,
    deliver: { sqlite: { ratio: 0.39, one: { perSecond: 12_346 } } },
    peers: { bullmq: { ratio: null } },
  })
})

test("the table says whether a floor is met, and why a figure is void", () => {
  const figures = FIGURES.filter(({ name }) => /^(deliver\.sqlite|peers\.bullmq)/.test(name))
  const text = toTable(report, figures)
  expect(text).toContain("on a machine, of which others took 5.7 %;")
  expect(text).toMatch(/^deliver\.sqlite\.ratio +0\.39 +≥ 0\.4 +no /m)
  expect(text).toMatch(/^peers\.bullmq\.ratio +– +≥ 2 +void /m)
  expect(text).toContain("peers.bullmq.ratio void: 1 came again")
})

test("an unknown figure is refused with the names of all figures", async () => {
  const program = startBench(["--only", "speed"])
  expect(await program.ended).toMatchObject({ code: 2 })
  for (const { name } of FIGURES) expect(program.stderr).toContain(name)
  expect(program.lines).toEqual([])
})

test("results of a full run are not replaced by those of a part, or of a quick run", async () => {
  for (const flags of [["--quick"], ["--only", "deliver"]]) {
    const program = startBench(["--markdown", "page.md", ...flags])
    expect(await program.ended).toMatchObject({ code: 2 })
    expect(program.stderr).toContain("--markdown takes a full run")
  }
})

test.runIf(existsSync("/dev/shm"))(
  "files in memory are refused: a commit would wait for no disk",
  async () => {
    const under = ["env", "TMPDIR=/dev/shm"]
    const program = startBench(["--quick"], under)
    expect(await program.ended).toMatchObject({ code: 2 })
    expect(program.stderr).toContain("set TMPDIR to a folder on a disk")
  },
)
