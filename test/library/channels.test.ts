/** Channels through the whole library: notifications are stored, sent in the form of their channel, retried, and reveal no secret. */
import { readFileSync } from "node:fs"
import { Webhook } from "standardwebhooks"
import { expect, test } from "vitest"
import { eventTypeOf, writePayload } from "../../src/alerts/channels/payload.ts"
import { evaluate } from "../../src/alerts/evaluate.ts"
import { NOTIFICATION_KINDS, type Notification } from "../../src/alerts/notification.ts"
import { type PlanSettings, plan } from "../../src/alerts/plan.ts"
import { defaultsOf, RULE_IDS } from "../../src/alerts/rules.ts"
import { ALERT_CHANNEL_KINDS } from "../../src/core/alert-channel-kinds.ts"
import { PosthornError } from "../../src/core/errors.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { TENANT_WEBHOOK_APP } from "../../src/tenant-webhooks/tenant-webhooks.ts"
import { alertOf, factsOf, snapshotOf } from "../support/alert-samples.ts"
import { TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { Recorder } from "../support/recorder.ts"
import { SmtpReceiver } from "../support/smtp.ts"

const ROUTING_KEY = "0123456789abcdef0123456789ABCDEF"
const STARTED_AT = Date.UTC(2031, 4, 18, 17, 53)

function notificationOf(more: Partial<Notification> = {}): Notification {
  return {
    kind: "firing",
    rule: "oldest-due",
    severity: "critical",
    summary: "A delivery waits for 7 minutes",
    description: "The oldest due delivery waits for longer than 300 s.",
    groupKey: "oldest-due",
    startedAt: STARTED_AT,
    endedAt: null,
    subjects: [{ name: "ep_1", since: STARTED_AT, detail: "42 deliveries are due" }],
    more: 0,
    ...more,
  }
}

/** As an evaluation makes it. */
function lateDelivery(): Notification {
  const snapshot = snapshotOf({ oldestDue: { at: STARTED_AT - 420_000, endpointId: "ep_1" } })
  const [subject] = evaluate("oldest-due", defaultsOf("oldest-due"), factsOf({ snapshot, now: STARTED_AT }))
  const alert = alertOf({ ...subject, rule: "oldest-due", subject: "", startedAt: STARTED_AT })
  const rules = Object.fromEntries(RULE_IDS.map((id) => [id, defaultsOf(id)])) as PlanSettings["rules"]
  const { outgoing } = plan(
    { alerts: [alert], groups: {}, channels: {} },
    {
      ...{
        rules,
        channels: [{ name: "hook", isReadable: true }],
        silences: [],
        repeatMs: 1,
        perHour: 1,
        now: STARTED_AT,
      },
      newKey: () => "",
      newGroupKey: ({ rule, id }) => `${rule}:${id}`,
    },
  )
  return outgoing[0]!.notification
}

test("the page about alerts has every kind of channel, and the payload that a webhook gets", () => {
  const page = readFileSync(new URL("../../docs/alerts.md", import.meta.url), "utf8")
  const [, table] = page.split("| kind | fields | what arrives |\n| --- | --- | --- |\n")
  const kinds = [...table!.split("\n\n")[0]!.matchAll(/^\| `(\w+)`/gm)].map(([, kind]) => kind)
  expect(kinds).toEqual([...ALERT_CHANNEL_KINDS])
  const [, example] = /^\*\*What a webhook gets:\*\*\n\n```json\n(.*?)^```/ms.exec(page)!
  expect(JSON.parse(example!)).toEqual(writePayload(lateDelivery()))
  for (const kind of NOTIFICATION_KINDS) expect(page).toContain(`\`${eventTypeOf(kind)}\``)
})

const bodyOf = ({ body }: { readonly body: Buffer }) => JSON.parse(body.toString("utf8"))

test("a webhook channel gets notifications signed with a secret of its own, which can be rotated", async () => {
  // The official library compares timestamps with the machine's clock.
  const harness = await Harness.start({ clock: new TestClock(Date.now()) })
  const { alertChannels, notifier } = harness.posthorn
  await alertChannels.put("hook", { kind: "webhook", url: harness.receiver.url("/hook?token=s3cret") })
  const { key } = await alertChannels.secret("hook")
  await notifier.notify(["hook"], notificationOf(), "alert-1:firing")
  const [first] = await harness.receiver.arrived("/hook?token=s3cret", 1)
  const payload = new Webhook(key).verify(first!.body, first!.headers as Record<string, string>)
  expect(payload).toEqual({
    type: "alert.firing",
    timestamp: "2031-05-18T17:53:00.000Z",
    data: {
      ...notificationOf(),
      startedAt: "2031-05-18T17:53:00.000Z",
      subjects: [{ name: "ep_1", since: "2031-05-18T17:53:00.000Z", detail: "42 deliveries are due" }],
    },
  })
  const rotated = await alertChannels.rotateSecret("hook", { gracePeriodSeconds: 0 })
  await notifier.notify(["hook"], notificationOf(), "alert-2:firing")
  const [, second] = await harness.receiver.arrived("/hook?token=s3cret", 2)
  const verify = (secret: string) =>
    new Webhook(secret).verify(second!.body, second!.headers as Record<string, string>)
  expect(() => verify(key)).toThrow("No matching signature")
  expect(verify(rotated.key)).toMatchObject({ type: "alert.firing" })
  expect((await alertChannels.get("hook")).target).toBe(`${new URL(harness.receiver.url()).origin}/…`)
  const { delivered } = await alertChannels.test("hook")
  expect(delivered).toBe(true)
  const third = (await harness.receiver.arrived("/hook?token=s3cret", 3))[2]!
  const tested = new Webhook(rotated.key).verify(third.body, third.headers as Record<string, string>)
  expect(tested).toMatchObject({ type: "alert.test" })
})

test("Slack and PagerDuty get the beginning before the end, also when the beginning has to be retried", async () => {
  const harness = await Harness.start({ random: () => 0.5 })
  const { alertChannels, notifier } = harness.posthorn
  const { receiver } = harness
  await alertChannels.put("chat", { kind: "slack", url: receiver.url("/services/T0/B0/XYZ") })
  const url = receiver.url("/v2/enqueue")
  await alertChannels.put("duty", { kind: "pagerduty", routingKey: ROUTING_KEY, url, source: "eu-1" })
  const slow = (seconds: string) => (_: unknown, response: import("node:http").ServerResponse) =>
    void response.writeHead(429, { "retry-after": seconds }).end()
  receiver.queue("/services/T0/B0/XYZ", slow("30"))
  receiver.queue("/v2/enqueue", slow("30"))
  await notifier.notify(["chat", "duty"], notificationOf(), "alert-1:firing")
  await receiver.arrived("/services/T0/B0/XYZ", 1)
  await receiver.arrived("/v2/enqueue", 1)
  const endedAt = STARTED_AT + 600_000
  await notifier.notify(["chat", "duty"], notificationOf({ kind: "resolved", endedAt }), "alert-1:resolved")
  await harness.quiet()
  expect(receiver.requests).toHaveLength(2)
  harness.clock.advance(30_000)
  const duty = (await receiver.arrived("/v2/enqueue", 3)).map(bodyOf)
  expect(duty.map(({ event_action }) => event_action)).toEqual(["trigger", "trigger", "resolve"])
  expect(duty[1]).toMatchObject({
    routing_key: ROUTING_KEY,
    dedup_key: "oldest-due",
    payload: {
      summary: "Firing: oldest-due: A delivery waits for 7 minutes",
      source: "eu-1",
      severity: "critical",
      custom_details: { subjects: [{ name: "ep_1", detail: "42 deliveries are due" }] },
    },
  })
  expect(duty[2]).toEqual({ routing_key: ROUTING_KEY, dedup_key: "oldest-due", event_action: "resolve" })
  const chat = (await receiver.arrived("/services/T0/B0/XYZ", 3)).map(bodyOf)
  expect(chat.map(({ text }) => text.split(":")[0])).toEqual(["Firing", "Firing", "Resolved"])
  expect(receiver.to("/services/T0/B0/XYZ")[2]!.headers).toMatchObject({ "content-type": "application/json" })
})

test("the same key sends once, in other words too, and after a restart in the middle with the same id", async () => {
  const harness = await Harness.start()
  const { receiver } = harness
  await harness.posthorn.alertChannels.put("hook", { kind: "webhook", url: receiver.url("/hook") })
  const release = receiver.hold("/hook")
  await harness.posthorn.notifier.notify(["hook"], notificationOf(), "alert-1:firing")
  const [first] = await receiver.arrived("/hook", 1)
  await harness.restart()
  release(200)
  await harness.posthorn.notifier.notify(["hook"], notificationOf({ summary: "8 minutes" }), "alert-1:firing")
  const [, second] = await receiver.arrived("/hook", 2)
  await harness.quiet()
  expect(receiver.to("/hook")).toHaveLength(2)
  expect(second!.id).toBe(first!.id)
  expect(bodyOf(second!)).toEqual(bodyOf(first!))
})

test("a channel that fails is counted and logged without its secrets, and nobody is notified of it", async () => {
  const lines = new LogLines()
  const instruments = new Recorder()
  const harness = await Harness.start({ logger: lines.logger, instruments })
  const { alertChannels, notifier, tenantWebhooks } = harness.posthorn
  const { receiver } = harness
  const shadow = await tenantWebhooks.open(DEFAULT_ORG)
  await shadow.endpoints.create(TENANT_WEBHOOK_APP, { url: receiver.url("/operations") })
  const secret = "/services/T0/B0/XYZ"
  // As a proxy that redirects to HTTPS would.
  receiver.queue(secret, (_request, response) => {
    response.writeHead(302, { location: `https://hooks.example.com${secret}` }).end()
  })
  receiver.always(secret, (request, response) => response.writeHead(404).end(`no_service ${request.path}`))
  await alertChannels.put("chat", { kind: "slack", url: receiver.url(secret) })
  await notifier.notify(["chat"], notificationOf(), "alert-1:firing")
  await receiver.arrived(secret, 1)
  await harness.quiet()
  harness.clock.advance(10_000)
  await receiver.arrived(secret, 2)
  await harness.quiet()
  await tenantWebhooks.settled()
  expect(receiver.to("/operations")).toEqual([])
  expect(instruments.of("notificationSettled")).toEqual([
    ["slack", "failed"],
    ["slack", "dead"],
  ])
  const tables = ["webhook_deliveries", "attempts", "endpoints", "entries", "messages"]
  const rows = await Promise.all(tables.map((table) => harness.sql(`SELECT * FROM ${table}`)))
  expect(JSON.stringify(rows)).toContain("HTTP 404: no_service …")
  expect(JSON.stringify([rows, lines.all])).not.toMatch(/B0.XYZ/)
  expect((await harness.posthorn.stats()).dead).toBe(0)
  expect((await harness.posthorn.deliveries.list()).data).toEqual([])
})

test("the path and the query of a webhook are shown nowhere", async () => {
  const lines = new LogLines()
  const harness = await Harness.start({ logger: lines.logger })
  const { alertChannels } = harness.posthorn
  const address = "/hooks/hidden-path?token=hidden-query"
  harness.receiver.always(address, (request, response) => response.writeHead(404).end(`no ${request.path}`))
  const shown = await alertChannels.put("hook", { kind: "webhook", url: harness.receiver.url(address) })
  const result = await alertChannels.test("hook")
  expect(result).toMatchObject({ delivered: false, detail: expect.stringContaining("answered 404 (no …)") })
  expect(JSON.stringify([shown, result, lines.all])).not.toContain("hidden")
})

test("secrets are sealed in the store and left out wherever a channel is shown", async () => {
  const harness = await Harness.start()
  const { alertChannels } = harness.posthorn
  await alertChannels.put("chat", { kind: "slack", url: harness.receiver.url("/services/hidden-slack") })
  await alertChannels.put("duty", { kind: "pagerduty", routingKey: ROUTING_KEY })
  await alertChannels.put("post", {
    kind: "mail",
    host: "smtp.example.com",
    user: "posthorn",
    password: "hidden-password",
    from: "posthorn@example.com",
    to: ["ops@example.com"],
  })
  const shown = (await alertChannels.list()).data
  expect(shown.map(({ name, kind, target, deadLetters }) => [name, kind, target, deadLetters])).toEqual([
    ["chat", "slack", `${new URL(harness.receiver.url()).origin}/…`, true],
    ["duty", "pagerduty", "https://events.pagerduty.com/…", false],
    ["post", "mail", "ops@example.com by smtp.example.com:587", true],
  ])
  const entries = await harness.sql("SELECT * FROM entries")
  for (const text of [JSON.stringify(shown), JSON.stringify(entries)]) {
    expect(text).not.toContain("hidden")
    expect(text).not.toContain(ROUTING_KEY)
  }
  expect(JSON.stringify(entries)).not.toContain("smtp.example.com")
})

test("no caller can give an endpoint the URL of a channel", async () => {
  const harness = await Harness.start()
  const { endpoints, alertChannels } = harness.posthorn
  const id = await harness.endpoint()
  await alertChannels.put("hook", { kind: "webhook", url: harness.receiver.url("/hook") })
  const refused = { code: "invalid_input", field: "url", message: expect.stringContaining("address") }
  for (const url of ["notify:hook", "NOTIFY:hook", " notify:hook", "notify://hook"]) {
    await expect(endpoints.create("acme", { url })).rejects.toMatchObject(refused)
    await expect(endpoints.update("acme", id, { url })).rejects.toMatchObject(refused)
    await expect(alertChannels.put("x", { kind: "webhook", url })).rejects.toMatchObject(refused)
  }
})

test("mail goes through the engine: a refusal for now is retried as the same mail, and its thread is the alert's", async () => {
  const harness = await Harness.start({ random: () => 0.5 })
  const smtp = await SmtpReceiver.start()
  const { alertChannels, notifier } = harness.posthorn
  await alertChannels.put("post", {
    kind: "mail",
    host: "127.0.0.1",
    port: smtp.port,
    security: "none",
    from: "posthorn@example.com",
    to: ["ops@example.com", "oncall@example.com"],
  })
  const ids: (string | undefined)[] = []
  smtp.answers = {
    data: (mail) => {
      ids.push(mail.headers.get("message-id"))
      return ids.length === 1 ? { code: 451, text: "4.7.1 greylisted" } : null
    },
  }
  await notifier.notify(["post"], notificationOf(), "alert-1:firing")
  await harness.published("delivery.attempt", 1)
  await harness.quiet()
  harness.clock.advance(5000)
  const [mail] = await smtp.arrived(1)
  await notifier.notify(
    ["post"],
    notificationOf({ kind: "resolved", endedAt: STARTED_AT + 1 }),
    "alert-1:end",
  )
  const [, end] = await smtp.arrived(2)
  expect(ids[1]).toBe(ids[0])
  expect(ids[2]).not.toBe(ids[0])
  expect(mail).toMatchObject({ from: "posthorn@example.com", to: ["ops@example.com", "oncall@example.com"] })
  expect(mail!.headers.get("subject")).toContain("[Posthorn] Firing: oldest-due")
  expect(end!.headers.get("in-reply-to")).toBe(mail!.headers.get("in-reply-to"))
  expect(end!.headers.get("references")).toBe(mail!.headers.get("in-reply-to"))
  const { rows } = { rows: await harness.rows() }
  expect(rows.map(({ status, attempt_count }) => [status, Number(attempt_count)])).toContainEqual([
    "delivered",
    2,
  ])
})

test("a deleted channel gets nothing more, and its name can be used again", async () => {
  const harness = await Harness.start()
  const { alertChannels, notifier } = harness.posthorn
  const { receiver } = harness
  const put = () => alertChannels.put("hook", { kind: "webhook", url: receiver.url("/hook") })
  await put()
  const { key } = await alertChannels.secret("hook")
  await alertChannels.delete("hook")
  await expect(alertChannels.get("hook")).rejects.toMatchObject({ code: "not_found" })
  await expect(alertChannels.delete("hook")).rejects.toMatchObject({ code: "not_found" })
  await notifier.notify(["hook"], notificationOf(), "alert-1:firing")
  await put()
  expect((await alertChannels.secret("hook")).key).not.toBe(key)
  await notifier.notify(["hook"], notificationOf(), "alert-2:firing")
  await receiver.arrived("/hook", 1)
  await harness.quiet()
  expect(receiver.to("/hook")).toHaveLength(1)
})

test("channels of the options are put at start, written only when they differ, and refused with the field", async () => {
  const harness = await Harness.start({ open: false })
  const url = harness.receiver.url("/hook")
  const alerts = (more: object) =>
    ({ alerts: { channels: { hook: { kind: "webhook", url, ...more } } } }) as object
  await harness.open(alerts({}))
  const before = await harness.posthorn.alertChannels.get("hook")
  harness.clock.advance(1000)
  await harness.restart(alerts({}))
  expect(await harness.posthorn.alertChannels.get("hook")).toEqual(before)
  await harness.restart(alerts({ deadLetters: false }))
  expect(await harness.posthorn.alertChannels.get("hook")).toMatchObject({ deadLetters: false })
  await harness.close()
  await expect(harness.open(alerts({ url: "https://10.1.2.3/" }))).rejects.toMatchObject({
    code: "invalid_input",
    field: "alerts.channels.hook.url",
  })
  await harness.open()
})

test.each([
  ["webhook", '{"kind":"webhook","sealed":"AAAA"}'],
  [null, "moved to the new channel, see wiki"],
])("a channel that cannot be decrypted (%s) stops no other, and can be replaced and deleted", async (kind, body) => {
  const lines = new LogLines()
  const harness = await Harness.start({ logger: lines.logger })
  const { alertChannels, notifier } = harness.posthorn
  const url = harness.receiver.url("/hook")
  for (const name of ["bad", "good"]) await alertChannels.put(name, { kind: "webhook", url })
  const corrupt = () =>
    harness.sql(`UPDATE entries SET body = '${body}' WHERE kind = 'alert-channel' AND name = 'bad'`)
  await corrupt()
  for (let i = 0; i < 3; i++)
    expect(await notifier.channels()).toEqual([
      { name: "bad", deadLetters: false, isReadable: false },
      { name: "good", deadLetters: true, isReadable: true },
    ])
  // Once, not at each evaluation.
  expect(lines.about('The channel "bad" cannot be decrypted')).toHaveLength(1)
  expect((await alertChannels.list()).data).toMatchObject([
    { name: "bad", kind, target: expect.stringContaining("cannot be decrypted") },
    { name: "good" },
  ])
  await expect(alertChannels.test("bad")).rejects.toMatchObject({ code: "wrong_encryption_key" })
  await alertChannels.put("bad", { kind: "webhook", url })
  expect(await notifier.channels()).toMatchObject([{ isReadable: true }, { isReadable: true }])
  await corrupt()
  await alertChannels.delete("bad")
  expect((await alertChannels.list()).data.map(({ name }) => name)).toEqual(["good"])
})

test("a notification can be sent while the store is down, to the channels that were read before", async () => {
  let isDown = false
  const harness = await Harness.start({
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, name) {
          const member = Reflect.get(target, name)
          if (typeof member !== "function") return member
          return (...args: unknown[]) => {
            if (isDown && String(name).startsWith("get")) return Promise.reject(down())
            return member.apply(target, args)
          }
        },
      }),
  })
  const { alertChannels, notifier } = harness.posthorn
  await alertChannels.put("hook", { kind: "webhook", url: harness.receiver.url("/hook") })
  isDown = true
  await expect(notifier.sendNow("hook", notificationOf())).rejects.toMatchObject({
    code: "store_unavailable",
  })
  isDown = false
  expect(await notifier.channels()).toEqual([{ name: "hook", deadLetters: true, isReadable: true }])
  isDown = true
  expect(await notifier.sendNow("hook", notificationOf())).toEqual({ outcome: "delivered" })
  expect(harness.receiver.to("/hook")).toHaveLength(1)
  harness.receiver.always("/hook", 500)
  expect(await notifier.sendNow("hook", notificationOf())).toMatchObject({
    outcome: "transient",
    detail: expect.stringContaining("The receiver answered 500"),
  })
  isDown = false
})

test("a direct notification tells a refusal for good, and a channel that is gone, from what passes", async () => {
  const harness = await Harness.start()
  const { alertChannels, notifier } = harness.posthorn
  await alertChannels.put("chat", { kind: "slack", url: harness.receiver.url("/chat") })
  const outcomeOf = async (status: number) => {
    harness.receiver.always("/chat", status)
    return (await notifier.sendNow("chat", notificationOf())).outcome
  }
  expect([await outcomeOf(200), await outcomeOf(403), await outcomeOf(429), await outcomeOf(503)]).toEqual([
    "delivered",
    "permanent",
    "transient",
    "transient",
  ])
  await alertChannels.delete("chat")
  expect(await notifier.sendNow("chat", notificationOf())).toMatchObject({
    outcome: "permanent",
    detail: expect.stringContaining("does not exist"),
  })
})

function down(): Error {
  return new PosthornError("store_unavailable", "the store cannot be reached")
}
