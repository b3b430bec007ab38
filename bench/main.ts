/** `npm run bench`: durable deliveries per second against a bare loop that stores nothing, in the same run. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { parseArgs } from "node:util"
import { Pool } from "undici"
import { openPosthorn } from "../src/posthorn.ts"
import type { Store } from "../src/store/store.ts"
import type { Transport } from "../src/transport/transport.ts"
import { PostgresServer } from "../test/support/servers/postgres-server.ts"
import { RedisServer } from "../test/support/servers/redis-server.ts"
import { measureGuard, type Runner } from "./guard.ts"
import { storeOnMainThread } from "./thread.ts"

const { values: flags } = parseArgs({
  options: { quick: { type: "boolean" }, json: { type: "boolean" }, only: { type: "string" } },
})
const PARTS = ["deliver", "postgres", "guard", "thread"]
if (flags.only !== undefined && !PARTS.includes(flags.only)) {
  console.error(`--only takes one of ${PARTS.join(", ")}`)
  process.exit(2)
}
const COUNT = flags.quick ? 10_000 : 40_000
const PAYLOAD = { text: "x".repeat(980) }
const IN_FLIGHT = 64

const receiver = fork(new URL("./receiver.mjs", import.meta.url), { stdio: "inherit" })
const [{ port }] = (await once(receiver, "message")) as [{ port: number }]
const url = `http://127.0.0.1:${port}/hook`

/** Resolves when the receiver has counted so many. */
async function expectArrivals(count: number): Promise<{ reached: Promise<void> }> {
  receiver.send({ target: count })
  await once(receiver, "message")
  return { reached: once(receiver, "message").then(() => {}) }
}

async function bareLoop(count: number): Promise<number> {
  const pool = new Pool(new URL(url).origin, { connections: IN_FLIGHT, pipelining: 1 })
  const body = Buffer.from(JSON.stringify(PAYLOAD))
  const startedAt = performance.now()
  let left = count
  const worker = async () => {
    while (left-- > 0) {
      const response = await pool.request({
        path: "/hook",
        method: "POST",
        body,
        headers: { "content-type": "application/json" },
      })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  const perSecond = count / ((performance.now() - startedAt) / 1000)
  await pool.close()
  return perSecond
}

interface Figures {
  perSecond: number
  loopP99Ms: number
}

interface RunnerOptions {
  readonly endpoints: number
  /** A SQLite file of its own unless told. */
  readonly servers?: { readonly store: string; readonly schedule?: string }
  readonly transport?: Transport | undefined
  readonly onMainThread?: boolean
}

/** From `send` to settled: 64 senders at once, each message to one endpoint of many. */
async function openRunner({ endpoints, servers, transport, onMainThread }: RunnerOptions): Promise<Runner> {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-bench-"))
  const where = servers ?? { store: `sqlite:${join(folder, "bench.db")}` }
  const posthorn = await openPosthorn(
    { ...where, logger: "error", egress: { allow: ["127.0.0.0/8"] } },
    {
      ...(transport === undefined ? {} : { transport }),
      ...(onMainThread ? { wrapStore: (store) => besides(store, join(folder, "main-thread.db")) } : {}),
    },
  )
  // On a server the rows of the run before stay; its endpoints get nothing of this one.
  await posthorn.applications.delete("bench").catch(() => {})
  await posthorn.applications.create({ uid: "bench", name: "Bench" })
  for (let i = 0; i < endpoints; i++)
    await posthorn.endpoints.create("bench", { url, eventTypes: [`type-${i}`] })
  const run = async (total: number): Promise<number> => {
    const { reached } = await expectArrivals(total)
    let settled = 0
    let done = () => {}
    const allSettled = new Promise<void>((resolve) => {
      done = resolve
    })
    const stop = posthorn.on("delivery.delivered", () => {
      if (++settled === total) done()
    })
    const startedAt = performance.now()
    let sent = 0
    const sender = async () => {
      while (sent < total)
        await posthorn.send("bench", { eventType: `type-${sent++ % endpoints}`, payload: PAYLOAD })
    }
    await Promise.all([...Array.from({ length: IN_FLIGHT }, sender), reached, allSettled])
    stop()
    return total / ((performance.now() - startedAt) / 1000)
  }
  const close = async () => {
    await posthorn.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { run, close }
}

/** The store that was opened stays idle, and is closed with the other. */
function besides(opened: Store, path: string): Store {
  const store = storeOnMainThread(path)
  return {
    ...store,
    close: async () => {
      await opened.close()
      await store.close()
    },
  }
}

async function deliver(options: RunnerOptions, count: number): Promise<Figures> {
  const { run, close } = await openRunner(options)
  await run(Math.ceil(count / 4))
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const perSecond = await run(count)
  delay.disable()
  await close()
  return { perSecond, loopP99Ms: delay.percentile(99) / 1e6 }
}

const report = {
  machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, SQLite ${process.versions.sqlite}`,
  quick: flags.quick ?? false,
  ...(wanted("deliver") || wanted("postgres") ? await throughput() : {}),
  ...(wanted("guard") ? { egress: { guard: await guardCost() } } : {}),
  ...(wanted("thread") ? { thread: await threadGain() } : {}),
}
if (flags.json) console.log(JSON.stringify(report))
else console.log(JSON.stringify(report, null, 2))
receiver.disconnect()

function wanted(part: string): boolean {
  return flags.only === undefined || flags.only === part
}

/** SQLite on a thread of its own against the main thread, one endpoint. */
async function threadGain() {
  const own = await deliver({ endpoints: 1 }, COUNT)
  const main = await deliver({ endpoints: 1, onMainThread: true }, COUNT)
  return {
    perSecond: Math.round(own.perSecond),
    onMainThreadPerSecond: Math.round(main.perSecond),
    ratio: round(own.perSecond / main.perSecond),
    loopP99Ms: round(own.loopP99Ms),
    onMainThreadLoopP99Ms: round(main.loopP99Ms),
  }
}

/** Each way to keep deliveries against the bare loop, which runs before and after them. */
async function throughput() {
  await bareLoop(COUNT)
  const before = await bareLoop(COUNT)
  const measured: { [store: string]: { one: Figures; hundred: Figures } } = {}
  if (wanted("deliver")) measured.sqlite = await oneAndHundred()
  if (wanted("postgres")) {
    const postgres = await PostgresServer.start({ durable: true })
    const redis = await RedisServer.start()
    measured.postgres = await oneAndHundred({ store: postgres.url })
    measured.redis = await oneAndHundred({ store: postgres.url, schedule: redis.url })
    await Promise.all([postgres.close(), redis.close()])
  }
  const base = (before + (await bareLoop(COUNT))) / 2
  const figures = ({ perSecond, loopP99Ms }: Figures) => ({
    perSecond: Math.round(perSecond),
    ratio: round(perSecond / base),
    loopP99Ms: round(loopP99Ms),
  })
  const stores = Object.entries(measured).map(([store, { one, hundred }]) => [
    store,
    { one: figures(one), hundred: figures(hundred) },
  ])
  return { bare: { perSecond: Math.round(base) }, deliver: Object.fromEntries(stores) }
}

async function oneAndHundred(servers?: RunnerOptions["servers"]) {
  const where = servers === undefined ? {} : { servers }
  return {
    one: await deliver({ endpoints: 1, ...where }, COUNT),
    hundred: await deliver({ endpoints: 100, ...where }, COUNT),
  }
}

/** The ratio must stay at 0.95 or above. */
async function guardCost() {
  const figures = await measureGuard((transport) => openRunner({ endpoints: 100, transport }), COUNT / 8)
  return {
    perSecond: Math.round(figures.guardedPerSecond),
    plainPerSecond: Math.round(figures.plainPerSecond),
    ratio: round(figures.ratio),
    cpuRatio: round(figures.cpuRatio),
  }
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
