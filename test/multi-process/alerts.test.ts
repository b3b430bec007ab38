/** Alerts of three processes on one PostgreSQL: every transition is made once, and every notification sent once. */
import { expect, onTestFinished, test, vi } from "vitest"
import { NOTIFICATIONS_ORG } from "../../src/core/org.ts"
import { MONITOR_INTERVAL_MS } from "../../src/monitor/monitor.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import type { Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { FailingStore } from "../support/failing-store.ts"
import { LOOPBACK } from "../support/harness.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { Receiver } from "../support/receiver.ts"
import { ownPostgres } from "../support/servers/postgres.ts"

const ENDPOINTS = 12

class Site {
  readonly clock = new TestClock()
  readonly receiver: Receiver
  readonly #store: string
  readonly processes: Posthorn[] = []
  isDown = false

  private constructor(receiver: Receiver, store: string) {
    this.receiver = receiver
    this.#store = store
  }

  static async start(store?: string): Promise<Site> {
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    return new Site(receiver, store ?? (await migratedDatabase()))
  }

  async open(wrapStore?: (store: Store) => Store): Promise<Posthorn> {
    const posthorn = await openPosthorn(
      { store: this.#store, logger: "silent", egress: LOOPBACK, closeTimeoutMs: 0 },
      { clock: this.clock, ...(wrapStore === undefined ? {} : { wrapStore }) },
    )
    onTestFinished(() => posthorn.close())
    this.processes.push(posthorn)
    return posthorn
  }

  /** Every process evaluates, at once. */
  async evaluate(times = 1): Promise<void> {
    for (let i = 0; i < times; i++) {
      this.clock.advance(MONITOR_INTERVAL_MS)
      await Promise.all(this.processes.map(({ monitor }) => monitor!.runOnce()))
      if (!this.isDown) await vi.waitUntil(() => this.#isDelivered(), 25_000)
    }
  }

  /** The clock must not move while a notification is on its way: its attempt would reach its deadline. */
  async #isDelivered(): Promise<boolean> {
    const { store } = this.processes.at(-1)!.context
    const { pending, failed } = await store.countByStatus({ orgId: NOTIFICATIONS_ORG })
    return pending + failed === 0
  }

  /** Endpoints whose last attempts failed a quarter of an hour ago, as their gates record it. */
  async fail(): Promise<string[]> {
    const [one] = this.processes as [Posthorn]
    await one.applications.create({ uid: "acme", name: "Acme" })
    const ids: string[] = []
    for (let i = 0; i < ENDPOINTS; i++) {
      const { id } = await one.endpoints.create("acme", { url: this.receiver.url(`/bad${i}`) })
      await this.set(id, true)
      ids.push(id)
    }
    this.clock.advance(16 * 60_000)
    return ids
  }

  async set(id: string, isFailing: boolean): Promise<void> {
    const { store, clock } = this.processes[0]!.context
    const [endpoint] = await store.getEndpoints([id])
    const since = isFailing ? clock.now() : null
    const protection = {
      ...endpoint!.protection,
      isFailing,
      failures: 9,
      failingSince: since,
      lastError: "HTTP 500",
    }
    await store.updateEndpoint(id, { protection }, clock.now())
  }

  told(): string[] {
    return this.receiver.to("/ops").map(({ body }) => {
      const { type, data } = JSON.parse(body.toString("utf8"))
      return `${type} ${data.rule} ${data.subjects.length} and ${data.more}`
    })
  }
}

test("an alert of three processes is notified once, and so is its end", async () => {
  const site = await Site.start()
  for (let i = 0; i < 3; i++) await site.open()
  const [first] = site.processes as [Posthorn]
  await first.alertChannels.put("ops", { kind: "webhook", url: site.receiver.url("/ops") })
  const ids = await site.fail()
  await site.evaluate(3)
  await site.receiver.arrived("/ops", 1)
  await site.evaluate(3)
  expect(site.processes.filter(({ monitor }) => monitor!.isLeader)).toHaveLength(1)
  for (const { alerts } of site.processes)
    expect((await alerts.list({ state: "firing" })).data).toHaveLength(ENDPOINTS)
  for (const id of ids) await site.set(id, false)
  await site.evaluate(3)
  await site.receiver.arrived("/ops", 2)
  await site.evaluate(3)
  expect(site.told()).toEqual([
    "alert.firing endpoint-failing 10 and 2",
    "alert.resolved endpoint-failing 10 and 2",
  ])
})

test("a leader that dies between the transition and its notification loses and repeats nothing", async () => {
  const site = await Site.start()
  const died = Promise.withResolvers<void>()
  const store = new FailingStore()
  // The process reaches nothing any more after its first decision to notify.
  store.onSaved = ({ body }) => {
    if (!body.includes('"outbox":[{')) return
    store.isBroken = true
    died.resolve()
  }
  const leader = await site.open((real) => store.wrap(real))
  await leader.alertChannels.put("ops", { kind: "webhook", url: site.receiver.url("/ops") })
  await site.fail()
  await site.evaluate()
  expect(leader.monitor!.isLeader).toBe(true)
  for (let i = 0; i < 2; i++) await site.open()
  await site.evaluate()
  await died.promise
  expect(site.receiver.to("/ops")).toEqual([])
  leader.abandon()
  site.processes.shift()
  await site.evaluate(5)
  await site.receiver.arrived("/ops", 1)
  await site.evaluate(5)
  expect(site.told()).toEqual(["alert.firing endpoint-failing 10 and 2"])
})

test("a database that stops is notified by the leader alone, without the database, and so is its return", async () => {
  const postgres = await ownPostgres()
  const site = await Site.start(postgres.url)
  for (let i = 0; i < 2; i++) await site.open()
  const [first] = site.processes as [Posthorn]
  await first.alertChannels.put("ops", { kind: "webhook", url: site.receiver.url("/ops") })
  await site.evaluate()
  await postgres.stop("immediate")
  site.isDown = true
  // No further than to the notification: its attempt would reach its deadline while it is on its way.
  await site.evaluate(6)
  await site.receiver.arrived("/ops", 1)
  expect(site.told()).toEqual(["alert.firing store-unavailable 1 and 0"])
  await postgres.start()
  site.isDown = false
  for (const one of site.processes) await vi.waitUntil(async () => (await one.health()).ready, 20_000)
  await site.evaluate(4)
  await site.receiver.arrived("/ops", 2)
  expect(site.told()).toEqual([
    "alert.firing store-unavailable 1 and 0",
    "alert.resolved store-unavailable 1 and 0",
  ])
})
