/** Each alert rule over three processes that evaluate at once: its beginning and its end are notified once. The conditions are rows. */
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { AlertStore } from "../../src/alerts/alert-store.ts"
import { AlertEvaluator } from "../../src/alerts/evaluator.ts"
import { type DiskSpace, LocalAlerts } from "../../src/alerts/local-alerts.ts"
import type { Notification } from "../../src/alerts/notification.ts"
import type { DirectResult, Notifier } from "../../src/alerts/notifier.ts"
import { defaultsOf, RULE_IDS, type RuleId } from "../../src/alerts/rules.ts"
import { createIds } from "../../src/core/ids.ts"
import { preset } from "../../src/core/presets.ts"
import { HEALTHY, type Protection } from "../../src/core/protection.ts"
import { MONITOR_INTERVAL_MS, Monitor } from "../../src/monitor/monitor.ts"
import { createLogger } from "../../src/observe/log.ts"
import { Presence } from "../../src/relay/presence.ts"
import { NOW, sample } from "../../src/store/conformance/samples.ts"
import { amendment, type Stage, type StoreUnderTest, stageOn } from "../../src/store/conformance/stage.ts"
import { openSqliteStore } from "../../src/store/sqlite/store.ts"
import type { Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { FailingStore } from "../support/failing-store.ts"
import { temporaryFolder } from "../support/harness.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { openStore } from "../support/postgres-store.ts"

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const random = createIds((into) => void crypto.getRandomValues(into))

/** On SQLite the processes share the one connection that a file has. */
const STORES: { readonly [name: string]: () => Promise<StoreUnderTest> } = {
  async SQLite() {
    const store = await openSqliteStore({
      path: join(temporaryFolder(), "posthorn.db"),
      own: true,
      onLost() {},
    })
    onTestFinished(() => store.close())
    return { store, reopen: async () => store, beside: async () => store }
  },
  async PostgreSQL() {
    const url = await migratedDatabase()
    return { store: await openStore(url), reopen: () => openStore(url), beside: () => openStore(url) }
  },
}

/** The engine accepts a notification once for each key. What is sent directly counts each time. */
class Ledger implements Notifier {
  readonly #accepted = new Map<string, Notification>()
  readonly #sent: Notification[] = []

  async channels() {
    return [{ name: "ops", deadLetters: true, isReadable: true }]
  }

  async notify(_channels: readonly string[], notification: Notification, key: string): Promise<void> {
    this.#accepted.set(key, notification)
  }

  async sendNow(_channel: string, notification: Notification): Promise<DirectResult> {
    this.#sent.push(notification)
    return { outcome: "delivered" }
  }

  kindsOf(rule: RuleId): string[] {
    return [...this.#accepted.values(), ...this.#sent]
      .filter((one) => one.rule === rule)
      .map(({ kind }) => kind)
  }
}

type Process = Awaited<ReturnType<Site["open"]>>

class Site {
  readonly clock = new TestClock(NOW)
  readonly ledger = new Ledger()
  readonly outage = new FailingStore()
  readonly stage: Stage
  readonly #processes: Process[] = []
  readonly #kept: (() => Promise<void>)[] = []
  disk: DiskSpace = { freeBytes: 1e12, totalBytes: 2e12 }

  private constructor(stage: Stage) {
    this.stage = stage
  }

  static async start(name: string): Promise<Site> {
    const site = new Site(await stageOn(STORES[name]!)())
    for (let i = 0; i < 3; i++) site.#processes.push(await site.open())
    return site
  }

  async open() {
    const store: Store = this.outage.wrap(await this.stage.beside())
    const { clock, ledger: notifier } = this
    const shared = { store, clock, logger: createLogger("silent"), notifier, ids: random }
    const local = new LocalAlerts({ ...shared, deployment: "test", diskSpace: async () => this.disk })
    const alertStore = new AlertStore(store, clock)
    const evaluator = new AlertEvaluator({ ...shared, alertStore, local })
    const presence = new Presence(store, clock, random.make("alert", NOW))
    const monitor = new Monitor({
      ...{ ...shared, presence, defaultPolicy: preset("standard"), listeners: [evaluator] },
      ...{ holder: random.make("alert", NOW), intervalMs: MONITOR_INTERVAL_MS },
    })
    return { monitor, evaluator, local, alertStore }
  }

  /** Runs before each evaluation. */
  keep(run: () => Promise<void>): void {
    this.#kept.push(run)
  }

  /** Every process evaluates, at once. */
  async evaluate(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      this.clock.advance(MONITOR_INTERVAL_MS)
      for (const run of this.#kept) await run()
      await Promise.all(this.#processes.map(({ monitor }) => monitor.runOnce()))
      await Promise.all(this.#processes.map(({ local }) => local.settled()))
    }
  }

  /** The leader ends, and another process is started. */
  async replaceLeader(): Promise<void> {
    const at = this.#processes.findIndex(({ monitor }) => monitor.isLeader)
    const [leader] = this.#processes.splice(at, 1, await this.open())
    await leader!.evaluator.close(1000)
    await leader!.monitor.stop()
  }

  async set(rule: RuleId, thresholds: { readonly [name: string]: number }): Promise<void> {
    const [{ alertStore }] = this.#processes as [Process]
    const settings = defaultsOf(rule)
    const changed = { ...settings, thresholds: { ...settings.thresholds, ...thresholds } }
    await alertStore.saveRule(rule, changed, await alertStore.readRule(rule))
  }

  async protect(protection: Partial<Protection>): Promise<void> {
    const { store, endpoint } = this.stage
    await store.updateEndpoint(endpoint.id, { protection: { ...HEALTHY, ...protection } }, this.clock.now())
  }

  async send(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.stage.send({ receivedAt: this.clock.now() })
  }

  /** Attempts of all due deliveries. */
  async attempt(status: number): Promise<void> {
    await this.stage.attemptAll(status, this.clock.now())
  }

  async die(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.stage.send({ receivedAt: this.clock.now(), maxAttempts: 1 })
    await this.attempt(500)
  }

  async discardAll(): Promise<void> {
    const { store } = this.stage
    const page = { limit: 100, order: "ascending", from: null, back: false } as const
    const dead = await store.listDeliveries({ status: "dead" }, page)
    const change = { discardedAt: this.clock.now() }
    await store.amendIfUnchanged(dead.map((one) => amendment(one, change)))
  }
}

interface Scene {
  begin(site: Site): void | Promise<void>
  end(site: Site): void | Promise<void>
  /** After how many evaluations the end is notified at the latest. */
  readonly evaluations?: number
}

const failing = (agoMs: number) => (site: Site) =>
  site.protect({
    isFailing: true,
    failures: 9,
    failingSince: site.clock.now() - agoMs,
    lastError: "HTTP 500",
  })
const recovered = (site: Site) => site.protect({})
const nothing = () => {}
/** The sums are of 10 minutes. */
const WINDOW = 50

const SCENES: { readonly [id in Exclude<RuleId, "dead-letter">]: Scene } = {
  "dead-letters-count": {
    async begin(site) {
      await site.set("dead-letters-count", { count: 3 })
      await site.die(3)
    },
    end: (site) => site.discardAll(),
  },
  "dead-letters-growth": { begin: (site) => site.die(10), end: nothing, evaluations: WINDOW },
  "dead-letters-age": {
    async begin(site) {
      await site.die(1)
      site.clock.advance(7 * DAY)
    },
    end: (site) => site.discardAll(),
  },
  "retry-share": {
    async begin(site) {
      await site.set("retry-share", { attempts: 6 })
      await site.send(3)
      await site.attempt(500)
      site.clock.advance(MINUTE)
      await site.attempt(200)
    },
    end: nothing,
    evaluations: WINDOW,
  },
  "oldest-due": {
    async begin(site) {
      await site.send(1)
      site.clock.advance(5 * MINUTE)
    },
    end: (site) => site.attempt(200),
  },
  "endpoint-failing": { begin: failing(15 * MINUTE), end: recovered },
  "endpoint-open": {
    begin: (site) =>
      site.protect({
        ...{ phase: "open", since: site.clock.now() - 15 * MINUTE, until: site.clock.now() + DAY },
        ...{ isFailing: true, failingSince: site.clock.now() - 15 * MINUTE, lastError: "HTTP 500" },
      }),
    end: recovered,
  },
  "endpoint-disabling": { begin: failing(4.5 * DAY), end: recovered },
  "agent-absent": {
    async begin(site) {
      const { store, application } = site.stage
      const createdAt = site.clock.now()
      await store.createEndpoint(sample.endpoint(application.id, { url: "relay://hub", createdAt }))
      site.clock.advance(5 * MINUTE)
    },
    async end(site) {
      const { store, application } = site.stage
      const hub = new Presence(store, site.clock, "hub's process")
      await hub.renew({})
      await hub.connected({ orgId: application.orgId, appId: application.id }, "hub", "1")
      site.keep(() => hub.renew({}))
    },
  },
  "store-unavailable": {
    begin(site) {
      site.outage.isBroken = true
    },
    end(site) {
      site.outage.isBroken = false
    },
  },
  "disk-space": {
    begin(site) {
      site.disk = { ...site.disk, freeBytes: 1 }
    },
    end(site) {
      site.disk = { ...site.disk, freeBytes: 1e12 }
    },
  },
}

test("every rule has a scene", () => {
  expect(["dead-letter", ...Object.keys(SCENES)].toSorted()).toEqual([...RULE_IDS].toSorted())
})

describe.each(Object.keys(STORES))("three processes on %s", (store) => {
  test.each(Object.entries(SCENES) as [RuleId, Scene][])("%s fires once, and resolves once", async (rule, {
    begin,
    end,
    evaluations = 8,
  }) => {
    const site = await Site.start(store)
    await site.evaluate(2)
    await begin(site)
    await site.evaluate(8)
    expect(site.ledger.kindsOf(rule)).toEqual(["firing"])
    // A successor leads the alert to its end; without the store there is none.
    if (rule !== "store-unavailable") await site.replaceLeader()
    await site.evaluate(2)
    await end(site)
    await site.evaluate(evaluations)
    expect(site.ledger.kindsOf(rule)).toEqual(["firing", "resolved"])
  })

  test("a notice about dead letters is sent once", async () => {
    const site = await Site.start(store)
    await site.evaluate(2)
    await site.die(3)
    await site.evaluate(2)
    await site.replaceLeader()
    await site.evaluate(25)
    expect(site.ledger.kindsOf("dead-letter")).toEqual(["dead_letters"])
  })
})
