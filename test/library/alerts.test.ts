/** Alerts through the whole library: from deliveries that fail to the notification that a channel's receiver gets. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { MONITOR_INTERVAL_MS } from "../../src/monitor/monitor.ts"
import { FailingStore } from "../support/failing-store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { TestAgent } from "../support/test-agent.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** No evaluation by itself: the tests ask for each. */
const NEVER = 1e9

async function site(options: HarnessOptions = {}) {
  const harness = await Harness.start({ monitorIntervalMs: NEVER, ...options })
  await harness.posthorn.alertChannels.put("ops", { kind: "webhook", url: harness.receiver.url("/ops") })
  return harness
}

async function evaluate(harness: Harness, times = 1, everyMs = MONITOR_INTERVAL_MS): Promise<void> {
  for (let i = 0; i < times; i++) {
    // A request in flight would reach its deadline.
    await harness.quiet()
    harness.clock.advance(everyMs)
    await harness.posthorn.monitor!.runOnce()
  }
}

/** The notifications that arrived, once there are so many. */
async function told(
  harness: Harness,
  count: number,
): Promise<
  {
    type: string
    data: { rule: string; summary: string; groupKey: string; subjects: { detail: string }[]; more: number }
  }[]
> {
  const requests = await harness.receiver.arrived("/ops", count)
  return requests.map(({ body }) => JSON.parse(body.toString("utf8")))
}

const inShort = (all: Awaited<ReturnType<typeof told>>) =>
  all.map(({ type, data: { rule } }) => `${type} ${rule}`)

/** An endpoint that has been failing for a quarter of an hour. */
async function failing(harness: Harness): Promise<string> {
  const endpointId = await harness.endpoint(
    { retry: { delays: [1, 1, 1, 1, 1, 1], then: 9999, maxAttempts: 50, breaker: false } },
    "/bad",
  )
  harness.receiver.always("/bad", 500)
  await harness.send()
  for (let i = 1; i <= 6; i++) {
    await harness.published("delivery.attempt", i)
    await harness.quiet()
    harness.clock.advance(2000)
  }
  await harness.published("delivery.attempt", 7)
  await harness.quiet()
  harness.clock.advance(15 * MINUTE)
  await harness.quiet()
  return endpointId
}

test("an endpoint that fails for a quarter of an hour fires, and its recovery resolves", async () => {
  const harness = await site()
  const endpointId = await failing(harness)
  const { alerts } = harness.posthorn
  await evaluate(harness)
  expect((await alerts.list({ state: "pending" })).data).toMatchObject([
    { rule: "endpoint-failing", subject: endpointId },
  ])
  await evaluate(harness)
  expect(inShort(await told(harness, 1))).toEqual(["alert.firing endpoint-failing"])
  const [alert] = (await alerts.list({ state: "firing" })).data
  expect(alert).toMatchObject({ subject: endpointId, severity: "warning", channels: ["ops"], endedAt: null })
  expect(alert!.detail).toContain("last error: HTTP 500")
  expect(await alerts.evaluation()).toMatchObject({ ageSeconds: 0 })

  harness.receiver.always("/bad", 200)
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await evaluate(harness, 2)
  expect(inShort(await told(harness, 2))).toEqual([
    "alert.firing endpoint-failing",
    "alert.resolved endpoint-failing",
  ])
  expect(await alerts.get(alert!.id)).toMatchObject({ state: "resolved", channels: [] })
})

test("a dead letter notifies, with its reason and last error", async () => {
  const harness = await site()
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 1 } }, "/bad")
  harness.receiver.always("/bad", 500)
  await harness.send()
  await harness.published("delivery.dead", 1)
  await evaluate(harness)
  const [notice] = await told(harness, 1)
  expect(notice).toMatchObject({
    type: "dead_letters",
    data: { summary: "Dead letters: 1 delivery was given up" },
  })
  expect(JSON.stringify(notice)).toMatch(
    /1 given up since [^;]+:00:00Z; its newest dead letter: exhausted: HTTP 500/,
  )
  await evaluate(harness, 30)
  await harness.quiet()
  expect(harness.receiver.to("/ops")).toHaveLength(1)
})

test("a channel that is put later gets notices of the deaths since then, also of those before an evaluation", async () => {
  const harness = await site()
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 1, breaker: false } }, "/bad")
  harness.receiver.always("/bad", 500)
  const die = async (sofar: number, count: number) => {
    for (let i = 0; i < count; i++) await harness.send()
    await harness.published("delivery.dead", sofar + count)
    await harness.quiet()
  }
  const put = (name: string) =>
    harness.posthorn.alertChannels.put(name, { kind: "webhook", url: harness.receiver.url(`/${name}`) })
  const summaries = async (path: string) =>
    (await harness.receiver.arrived(path, 1)).map(({ body }) => JSON.parse(body.toString()).data.summary)
  await die(0, 3)
  await evaluate(harness)
  await die(3, 2)
  await put("late")
  await die(5, 1)
  await evaluate(harness)
  expect(await summaries("/late")).toEqual(["Dead letters: 1 delivery was given up"])
  // A name that was used before begins anew.
  await harness.posthorn.alertChannels.delete("late")
  await die(6, 4)
  await put("late")
  await evaluate(harness, 25)
  await harness.quiet()
  expect(await summaries("/late")).toHaveLength(1)
})

test("a notice is about the deaths since the last one, not about an older and larger group", async () => {
  const harness = await site({ alerts: { rules: { "dead-letter": { minutes: 240 } } } })
  const endpointId = await harness.endpoint(
    { retry: { delays: [1], maxAttempts: 1, breaker: false } },
    "/bad",
  )
  harness.receiver.always("/bad", 500)
  for (let i = 0; i < 3; i++) await harness.send()
  await harness.published("delivery.dead", 3)
  await evaluate(harness)
  await told(harness, 1)
  await harness.quiet()
  harness.clock.advance(HOUR)
  harness.receiver.always("/bad", 503)
  await harness.send()
  await harness.published("delivery.dead", 4)
  await evaluate(harness)
  // The notice is due three hours after the death.
  await evaluate(harness, 1, 3 * HOUR)
  const { data } = (await told(harness, 2))[1]!
  expect(data.summary).toBe("Dead letters: 1 delivery was given up")
  expect(data).toMatchObject({ more: 0, subjects: [{ name: expect.stringContaining(endpointId) }] })
  expect(data.subjects[0]!.detail).toMatch(/ given up since .*; its newest dead letter: exhausted: HTTP 503/)
})

test("an operational webhook that dies causes no notice and no alert: nobody could clear it", async () => {
  const harness = await site()
  const { tenantWebhooks, alerts } = harness.posthorn
  const shadow = await tenantWebhooks.open(DEFAULT_ORG)
  const retry = { delays: [1], maxAttempts: 1 }
  await shadow.endpoints.create("operational", { url: harness.receiver.url("/theirs"), retry })
  harness.receiver.always("/theirs", 500)
  await harness.endpoint()
  await harness.published("delivery.dead", 1)
  await evaluate(harness)
  // As `dead-letters-age` fires.
  await evaluate(harness, 2, 8 * 24 * HOUR)
  await harness.quiet()
  expect((await alerts.list()).data).toEqual([])
  expect(harness.receiver.to("/ops")).toEqual([])
})

test("a delivery that expired after a week is no week-old dead letter at the moment of its death", async () => {
  const harness = await site()
  await harness.endpoint({ retry: "relay" }, "/bad")
  harness.receiver.always("/bad", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  harness.clock.advance(7 * 24 * HOUR)
  await harness.published("delivery.dead", 1)
  await evaluate(harness, 2)
  const ages = async () => (await harness.posthorn.alerts.list({ rule: "dead-letters-age" })).data
  expect(await ages()).toEqual([])
  await evaluate(harness, 1, 7 * 24 * HOUR)
  expect(await ages()).toMatchObject([{ state: "pending" }])
})

test("a flood of 10 000 dead letters makes a handful of notifications", { timeout: 120_000 }, async () => {
  const harness = await site()
  await harness.endpoint({ retry: { delays: [1], maxAttempts: 1, breaker: false, gone: false } }, "/bad")
  harness.receiver.always("/bad", 500)
  for (let sent = 0; sent < 10_000; sent += 500) {
    const messages = Array.from({ length: 500 }, (_, n) => ({ eventType: "flood", payload: n }))
    await harness.posthorn.sendBatch("acme", messages)
    await harness.published("delivery.dead", sent + 500)
    if (sent % 2000 === 0) await evaluate(harness, 4)
  }
  await evaluate(harness, 40)
  await harness.quiet()
  const all = await told(harness, 4)
  expect(all.length).toBeLessThan(12)
  const counts = all.map(({ data }) => Number(/(\d+) deliver.* given up/.exec(data.summary)?.[1] ?? 0))
  expect(counts.reduce((sum, count) => sum + count)).toBe(10_000)
  expect(new Set(inShort(all))).toContain("alert.firing dead-letters-growth")
  expect(new Set(inShort(all))).toContain("alert.firing dead-letters-count")
})

test("state, acknowledgements and silences survive a restart", async () => {
  const harness = await site()
  await failing(harness)
  await evaluate(harness, 2)
  await told(harness, 1)
  const [alert] = (await harness.posthorn.alerts.list()).data
  await harness.posthorn.alerts.acknowledge(alert!.id, { by: "key_1" })
  const until = new Date(harness.clock.now() + HOUR)
  const { id: silenceId } = await harness.posthorn.alerts.silences.create({
    rule: "oldest-due",
    until,
    reason: "moving",
  })
  await harness.restart()
  const { alerts } = harness.posthorn
  expect(await alerts.get(alert!.id)).toMatchObject({ state: "acknowledged", acknowledgedBy: "key_1" })
  expect((await alerts.silences.list()).data).toMatchObject([{ id: silenceId, reason: "moving", until }])
  await evaluate(harness, 3, 3 * HOUR)
  await harness.quiet()
  // Neither a second beginning nor a repeat.
  expect(harness.receiver.to("/ops").filter(({ body }) => body.includes("endpoint-failing"))).toHaveLength(1)
})

test("a firing alert is repeated after the hours of the setting", async () => {
  const harness = await site({ alerts: { repeatHours: 2 } })
  await failing(harness)
  await evaluate(harness, 2)
  await told(harness, 1)
  await evaluate(harness, 1, HOUR)
  await evaluate(harness, 1, HOUR)
  expect(inShort(await told(harness, 2))).toEqual([
    "alert.firing endpoint-failing",
    "alert.repeated endpoint-failing",
  ])
})

test("a silenced alert fires without a notification", async () => {
  const harness = await site()
  const endpointId = await failing(harness)
  const { alerts } = harness.posthorn
  const until = harness.clock.now() + HOUR
  await alerts.silences.create({ rule: "endpoint-failing", subject: endpointId, until })
  await evaluate(harness, 3)
  await harness.quiet()
  expect((await alerts.list()).data).toMatchObject([{ state: "silenced", channels: [] }])
  expect(harness.receiver.to("/ops")).toEqual([])
})

test("a channel that fails causes no notification about itself", async () => {
  const harness = await site()
  harness.receiver.always("/ops", 500)
  const endpointId = await harness.endpoint({ retry: { delays: [1], maxAttempts: 1 } }, "/bad")
  harness.receiver.always("/bad", 500)
  await harness.send()
  await harness.published("delivery.dead", 1)
  await evaluate(harness)
  // The notice about one dead letter fails, is retried, and dies.
  await evaluate(harness, 40, HOUR)
  const notices = harness.receiver.to("/ops").filter(({ body }) => body.includes("dead_letters"))
  expect(notices.length).toBeGreaterThan(3)
  expect(new Set(notices.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
  const others = (await harness.posthorn.alerts.list()).data.filter(({ subject }) => subject !== endpointId)
  expect(others).toEqual([])
})

test("a store that fails is notified without it", async () => {
  const store = new FailingStore()
  const harness = await site({ wrapStore: (real) => store.wrap(real) })
  await evaluate(harness)
  store.isBroken = true
  await evaluate(harness, 6)
  expect(inShort(await told(harness, 1))).toEqual(["alert.firing store-unavailable"])
  store.isBroken = false
  await evaluate(harness, 2)
  expect(inShort(await told(harness, 2))).toEqual([
    "alert.firing store-unavailable",
    "alert.resolved store-unavailable",
  ])
})

test("two deployments have different keys for their alerts about the store, which a restart keeps", async () => {
  const key = async (encryptionKey: string, times: number) => {
    const store = new FailingStore()
    const harness = await site({ encryptionKey, wrapStore: (real) => store.wrap(real) })
    await evaluate(harness)
    const keys = new Set<string>()
    for (let i = 1; i <= times; i++) {
      store.isBroken = true
      await evaluate(harness, 6)
      keys.add((await told(harness, 2 * i - 1)).at(-1)!.data.groupKey)
      store.isBroken = false
      await evaluate(harness, 2)
      await told(harness, 2 * i)
      await harness.quiet()
      await harness.restart()
      await evaluate(harness)
    }
    expect(keys.size).toBe(1)
    return [...keys][0]
  }
  expect(await key("1".repeat(64), 2)).not.toBe(await key("2".repeat(64), 1))
})

test("the alert about a store that fails can be read and acknowledged meanwhile", async () => {
  const store = new FailingStore()
  const harness = await site({ wrapStore: (real) => store.wrap(real) })
  const { alerts } = harness.posthorn
  const unavailable = { code: "store_unavailable" }
  await evaluate(harness)
  store.isBroken = true
  await expect(alerts.list()).rejects.toMatchObject(unavailable)
  await evaluate(harness, 6)
  await told(harness, 1)
  const [alert] = (await alerts.list({ state: "firing" })).data
  expect(alert).toMatchObject({ rule: "store-unavailable", severity: "critical" })
  expect(await alerts.acknowledge(alert!.id, { by: "key_1" })).toMatchObject({
    state: "acknowledged",
    acknowledgedBy: "key_1",
  })
  expect(await alerts.get(alert!.id)).toMatchObject({ state: "acknowledged" })
  await expect(alerts.get("alert_other")).rejects.toMatchObject(unavailable)
  await expect(alerts.acknowledge("alert_other")).rejects.toMatchObject(unavailable)
  store.isBroken = false
})

test("the options set rules and limits, and are refused as a whole with the field", async () => {
  const harness = await site({
    alerts: { rules: { "oldest-due": { seconds: 60, channels: null } }, notificationsPerHour: 5 },
  })
  const { alerts } = harness.posthorn
  expect(await alerts.rules.get("oldest-due")).toMatchObject({ thresholds: { seconds: 60 }, isChanged: true })
  expect(await alerts.settings()).toEqual({ repeatHours: 4, notificationsPerHour: 5 })
  const refused = async (input: object, field: string) => {
    await harness.close()
    await expect(harness.open({ alerts: input })).rejects.toMatchObject({ code: "invalid_input", field })
  }
  await refused({ rules: { "oldest-due": { seconds: -1 } } }, "alerts.rules.oldest-due.seconds")
  await refused({ rules: { "oldest-due": { minutes: 5 } } }, "alerts.rules.oldest-due.minutes")
  await refused({ rules: { oldest: {} } }, "alerts.rules.oldest")
  const url = harness.receiver.url("/new")
  const channels = { new: { kind: "webhook", url } }
  await refused({ channels, rules: { "oldest-due": { seconds: -1 } } }, "alerts.rules.oldest-due.seconds")
  await refused({ channels, repeatHours: 0 }, "alerts.repeatHours")
  await refused({ repeatHours: 0 }, "alerts.repeatHours")
  await refused({ repeat: 1 }, "alerts.repeat")
  await refused(
    { notificationsPerHour: 1.5, rules: { "oldest-due": { seconds: 90 } } },
    "alerts.notificationsPerHour",
  )
  const tooMany = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`c${i}`, channels.new]))
  await expect(harness.open({ alerts: { channels: tooMany } as object })).rejects.toMatchObject({
    code: "limit_reached",
  })
  const { alerts: after, alertChannels } = await harness.open({ alerts: {} })
  expect((await alertChannels.list()).data.map(({ name }) => name)).toEqual(["ops"])
  expect((await after.rules.get("oldest-due")).thresholds).toEqual({ seconds: 60 })
  expect(await after.rules.reset("oldest-due")).toMatchObject({
    thresholds: { seconds: 300 },
    isChanged: false,
  })
})

test("a rule of the options that names a deleted channel is a warning at start, and refused by a call", async () => {
  const lines = new LogLines()
  const rule = { seconds: 60, channels: ["duty", "ops"] }
  const harness = await site({ logger: lines.logger })
  const { alertChannels } = harness.posthorn
  await alertChannels.put("duty", { kind: "webhook", url: harness.receiver.url("/duty") })
  const alerts = { rules: { "oldest-due": rule } }
  await harness.restart({ alerts })
  expect(lines.about("alerts.rules")).toEqual([])
  await harness.posthorn.alertChannels.delete("duty")
  await harness.restart({ alerts })
  expect(lines.about("alerts.rules").map(({ msg }) => msg)).toEqual([
    'alerts.rules.oldest-due.channels must name channels that exist, and "duty" does not; the channels are ops. Its notifications skip that channel until it exists',
  ])
  const { rules } = harness.posthorn.alerts
  expect(await rules.get("oldest-due")).toMatchObject({ channels: ["duty", "ops"] })
  await expect(rules.put("oldest-due", rule)).rejects.toMatchObject({ field: "channels" })
})

test("bad input is refused with the field", async () => {
  const harness = await site()
  const { posthorn, clock } = harness
  const { alerts } = posthorn
  const deleted = await harness.endpoint()
  await posthorn.endpoints.delete("acme", deleted)
  const refusals: [() => Promise<unknown>, object][] = [
    [() => alerts.get("alert_1"), { code: "not_found" }],
    [() => alerts.acknowledge("alert_1"), { code: "not_found" }],
    [() => alerts.silences.delete("silence_1"), { code: "not_found" }],
    [() => alerts.list({ state: "open" as "firing" }), { field: "state" }],
    [() => alerts.list({ rule: "open" }), { field: "rule" }],
    [() => alerts.silences.create({ rule: "oldest-due", until: clock.now() }), { field: "until" }],
    [
      () => alerts.silences.create({ rule: "oldest-due", until: clock.now() + 400 * 24 * HOUR }),
      { field: "until" },
    ],
    [
      () => alerts.silences.create({ rule: "oldest-due", subject: "ep_1", until: clock.now() + 1 }),
      { field: "subject" },
    ],
    [
      () => alerts.silences.create({ rule: "endpoint-failing", subject: "acme", until: clock.now() + 1 }),
      { field: "subject", message: expect.stringContaining("must be the id of an endpoint") },
    ],
    [
      () => alerts.silences.create({ rule: "endpoint-failing", subject: deleted, until: clock.now() + 1 }),
      { field: "subject" },
    ],
    [() => alerts.rules.put("oldest-due", { enabled: 1 as unknown as boolean }), { field: "enabled" }],
    [() => alerts.putSettings({ repeatHours: 721 }), { field: "repeatHours" }],
  ]
  for (const [call, error] of refusals) await expect(call()).rejects.toMatchObject(error)
})

test("lists have pages in both directions", async () => {
  const { posthorn, clock } = await site()
  const { silences } = posthorn.alerts
  const ids: string[] = []
  for (let i = 0; i < 5; i++)
    ids.unshift((await silences.create({ rule: "oldest-due", until: clock.now() + HOUR })).id)
  const first = await silences.list({ limit: 2 })
  const second = await silences.list({ limit: 2, cursor: first.cursor! })
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids.slice(0, 4))
  expect((await silences.list({ limit: 2, cursor: second.previous! })).data).toEqual(first.data)
  expect(
    (await Array.fromAsync(silences.list({ limit: 2, order: "ascending" }))).map(({ id }) => id),
  ).toEqual(ids.toReversed())
})

test("an agent that is away is told once for all its endpoints, until it connects", async () => {
  const harness = await site()
  const { posthorn, clock } = harness
  await harness.endpoint({ url: "relay://hub" })
  await harness.endpoint({ url: "relay://hub", uid: "second" })
  await posthorn.endpoints.pause("acme", "second")
  clock.advance(5 * MINUTE)
  await evaluate(harness, 2)
  const { id: appId } = await posthorn.applications.get("acme")
  const [alert] = (await posthorn.alerts.list({ rule: "agent-absent" })).data
  expect(alert).toMatchObject({
    state: "firing",
    subject: `${appId}.hub`,
    name: `hub of ${appId}`,
    detail: "its agent hub was never connected",
  })
  await TestAgent.join(harness)
  await evaluate(harness, 2)
  expect(inShort(await told(harness, 2))).toEqual([
    "alert.firing agent-absent",
    "alert.resolved agent-absent",
  ])
  const [resolved] = (await posthorn.alerts.list({ rule: "agent-absent" })).data
  expect(resolved).toMatchObject({
    state: "resolved",
    detail: "the agent is connected, or no endpoint needs it",
  })
})

test("the alert of one agent can be silenced", async () => {
  const harness = await site()
  const { posthorn, clock } = harness
  await harness.endpoint({ url: "relay://hub" })
  await harness.endpoint({ url: "relay://other" })
  const { id: appId } = await posthorn.applications.get("acme")
  const until = clock.now() + HOUR
  for (const subject of [`${appId}.nobody`, "hub", appId])
    await expect(
      posthorn.alerts.silences.create({ rule: "agent-absent", subject, until }),
    ).rejects.toMatchObject({ code: "invalid_input", field: "subject" })
  await posthorn.alerts.silences.create({ rule: "agent-absent", subject: `${appId}.hub`, until })
  clock.advance(5 * MINUTE)
  await evaluate(harness, 2)
  const alerts = (await posthorn.alerts.list({ rule: "agent-absent" })).data
  expect(alerts.map(({ subject, state }) => [subject, state]).toSorted()).toEqual([
    [`${appId}.hub`, "silenced"],
    [`${appId}.other`, "firing"],
  ])
  const [first] = await told(harness, 1)
  expect(first!.data).toMatchObject({ summary: `Agents are not connected: other of ${appId}`, more: 0 })
})
