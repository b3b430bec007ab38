/** Live events of several processes on one PostgreSQL: all of them, and a gap where some were lost. */
import { expect, onTestFinished, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import { EventReader } from "../api/support/event-reader.ts"
import { ApiServer } from "../api/support/server.ts"
import { settledEvent } from "../support/events.ts"
import { FaultProxy } from "../support/fault-proxy.ts"
import { LOOPBACK } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { open, Site } from "./site.ts"

const PATIENCE = { timeout: 90_000 }
const WITNESSED = { timeout: 20_000 }
const LAST = "the last event before the test"

/** As if this process had settled deliveries. */
function emit({ context }: Posthorn, count: number, errorDetail = ""): void {
  for (let n = 0; n < count; n++) {
    const settled = settledEvent({ status: "dead", deadReason: "gone", errorDetail }, null)
    context.events.emit({ ...settled, orgId: DEFAULT_ORG })
  }
}

async function readerOn(store: string): Promise<EventReader> {
  const server = await ApiServer.start({ options: { store, deliver: false } })
  return EventReader.open(server.url, { key: server.key })
}

/** Emits until an event of this process arrives: then it knows that another one listens. Resolves when the reader has all of them. */
async function hearing(reader: EventReader, posthorn: Posthorn, last = LAST): Promise<void> {
  const has = (error: string) => reader.events.some(({ data }) => data.last_error === error)
  await expect
    .poll(
      () => {
        if (!has(`before ${last}`)) emit(posthorn, 1, `before ${last}`)
        return has(`before ${last}`)
      },
      { timeout: 20_000 },
    )
    .toBe(true)
  emit(posthorn, 1, last)
  await reader.until(() => has(last))
}

test("a server has the events of all processes", PATIENCE, async () => {
  const store = await migratedDatabase()
  const workers = [await open({ store }), await open({ store })]
  const reader = await readerOn(store)
  for (const [n, worker] of workers.entries()) await hearing(reader, worker, `${LAST}, of worker ${n}`)
  const before = reader.events.length
  for (const worker of workers) emit(worker, 300)
  await reader.until(() => reader.events.length >= before + 600)
  expect(reader.kinds).not.toContain("gap")
})

test(
  "summaries count the messages that other processes accept, and what they deliver",
  PATIENCE,
  async () => {
    const site = await Site.open({ store: await migratedDatabase() })
    await site.endpoint("lane")
    const worker = await open(site.place)
    const server = await ApiServer.start({ options: { ...site.place, deliver: false } })
    const reader = await EventReader.open(server.url, { key: server.key, query: "?summary_ms=250" })
    const sum = (of: (summary: { accepted: number; counts: { [kind: string]: number } }) => number) =>
      reader.events.reduce((total, { data }) => total + of(data), 0)
    const accepted = () => sum((summary) => summary.accepted)
    const delivered = () => sum(({ counts }) => counts["delivery.delivered"] ?? 0)
    let sent = 0
    const send = async (count: number) => {
      for (let n = 0; n < count; n++, sent++)
        await (sent % 2 === 0 ? site.sender : worker).send("acme", { eventType: "lane", payload: {} })
    }
    // Until both others know that this process listens.
    await expect
      .poll(
        async () => {
          const before = accepted()
          await send(2)
          await expect.poll(() => accepted() > before && delivered() > 0, WITNESSED).toBe(true)
          return accepted() - before
        },
        { timeout: 40_000 },
      )
      .toBe(2)
    const [acceptedBefore, deliveredBefore] = [accepted(), delivered()]
    await send(40)
    await reader.until(() => delivered() >= deliveredBefore + 40 && accepted() >= acceptedBefore + 40)
    expect(accepted() - acceptedBefore).toBe(40)
  },
)

test("events that were lost on the way are a gap, with their number", PATIENCE, async () => {
  const store = await migratedDatabase()
  const { hostname, port } = new URL(store)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  const worker = await open({ store })
  const witness = await open({ store, deliver: false })
  const errors: (string | null)[] = []
  onTestFinished(witness.on("delivery.dead", ({ last_error }) => void errors.push(last_error)))
  const reader = await readerOn(proxy.through(store))
  await hearing(reader, worker)
  await expect.poll(() => errors.at(-1), WITNESSED).toBe(LAST)
  const [read, witnessed] = [reader.events.length, errors.length]
  proxy.refuse()
  proxy.reset()
  emit(worker, 7)
  await expect.poll(() => errors.length, WITNESSED).toBe(witnessed + 7)
  proxy.heal()
  let sent = 7
  await expect
    .poll(
      () => {
        emit(worker, 1)
        sent++
        return reader.kinds
      },
      { timeout: 30_000 },
    )
    .toContain("gap")
  await reader.until(() => {
    const gaps = reader.events.filter(({ kind }) => kind === "gap")
    const missing = gaps.reduce((sum, { data }) => sum + data.count, 0)
    return reader.events.length - gaps.length - read + missing === sent
  })
  const gap = reader.events.find(({ kind }) => kind === "gap")!
  expect(gap.data).toMatchObject({ reason: "relay", from: expect.stringMatching(/^[0-9a-f]{12}-\d+-\d+$/) })
  expect(gap.data.count).toBeGreaterThanOrEqual(7)
})

test("the last events of a process that stops arrive, without a gap", PATIENCE, async () => {
  const store = await migratedDatabase()
  const worker = await openPosthorn({ store, egress: LOOPBACK, logger: "silent", closeTimeoutMs: 0 })
  const reader = await readerOn(store)
  await hearing(reader, worker)
  const before = reader.events.length
  emit(worker, 200)
  await worker.close()
  await reader.until(() => reader.events.length >= before + 200)
  expect(reader.kinds).not.toContain("gap")
})

test("a worker that was killed is missed in the log of the one that takes over", PATIENCE, async () => {
  const site = await Site.open({ store: await migratedDatabase() })
  await site.endpoint("lane")
  site.receiver.hold("/lane")
  const killed = await site.worker({ leaseMs: 1000, tells: true })
  await site.send("lane")
  await site.receiver.arrived("/lane", 1)
  const log = new LogLines()
  const heir = await openPosthorn(
    { ...site.place, egress: LOOPBACK, logger: log.logger, closeTimeoutMs: 0 },
    { leaseMs: 1000 },
  )
  onTestFinished(() => heir.close())
  await killed.kill()
  expect(await log.told("A worker stopped renewing its lease; its lanes are taken over")).toMatchObject({
    level: 40,
    worker: expect.stringContaining(`${killed.pid}`),
    worker_id: expect.any(Number),
    lanes: 1,
  })
})
