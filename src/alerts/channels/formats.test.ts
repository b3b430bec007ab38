/** The forms of notifications: any text stays within the documented limits of each service, and is escaped. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { bytesOfText } from "../../core/bytes.ts"
import { MOST_SUBJECTS, NOTIFICATION_KINDS, type Notification, SEVERITIES } from "../notification.ts"
import type { MailSettings, PagerDutySettings } from "./channel.ts"
import { mailOf } from "./mail.ts"
import { pagerDutyEvent } from "./pagerduty.ts"
import { readPayload, writePayload } from "./payload.ts"
import { slackMessage } from "./slack.ts"

const PAGERDUTY: PagerDutySettings = {
  kind: "pagerduty",
  routingKey: "0123456789abcdef0123456789abcdef",
  url: "https://events.pagerduty.com/v2/enqueue",
  source: "posthorn",
  deadLetters: false,
}
const MAIL: MailSettings = {
  kind: "mail",
  host: "smtp.example.com",
  port: 587,
  security: "starttls",
  login: null,
  ca: null,
  from: "posthorn@example.com",
  to: ["ops@example.com"],
  deadLetters: true,
}

const PLAIN: Notification = {
  kind: "firing",
  rule: "endpoint-failing",
  severity: "warning",
  summary: "2 endpoints fail",
  description: "They have had no success for 15 minutes.",
  groupKey: "endpoint-failing",
  startedAt: Date.UTC(2031, 4, 18),
  endedAt: null,
  subjects: [{ name: "ep_1", since: Date.UTC(2031, 4, 18), detail: "HTTP 500" }],
  more: 137,
}

/** Long, with markup of every service, line breaks, emoji and broken surrogates. */
const nasty = fc.oneof(
  fc.string({ unit: "binary", maxLength: 50 }),
  fc
    .tuple(
      fc.constantFrom(
        "<!channel>",
        "&",
        "<a|b>",
        "\r\nBcc: x@example.com",
        "\u{1f4ef}",
        "\ud800",
        "*_~`",
        "é",
      ),
      fc.integer({ min: 1, max: 5000 }),
    )
    .map(([text, times]) => text.repeat(times)),
)
const time = fc.integer({ min: 0, max: 4_000_000_000_000 })
const notifications: fc.Arbitrary<Notification> = fc.record({
  kind: fc.constantFrom(...NOTIFICATION_KINDS),
  rule: nasty,
  severity: fc.constantFrom(...SEVERITIES),
  summary: nasty,
  description: nasty,
  groupKey: nasty,
  startedAt: time,
  endedAt: fc.option(time),
  subjects: fc.array(fc.record({ name: nasty, since: time, detail: nasty }), { maxLength: MOST_SUBJECTS }),
  more: fc.integer({ min: 0, max: 1_000_000 }),
})
const always = (check: (notification: Notification) => void) =>
  fc.assert(fc.property(notifications, check), { numRuns: 200 })

interface SlackText {
  readonly type: string
  readonly text: string
  readonly verbatim?: boolean
}
interface SlackMessage {
  readonly text: string
  readonly blocks: readonly {
    readonly type: string
    readonly text?: SlackText
    readonly fields?: readonly SlackText[]
    readonly elements?: readonly SlackText[]
  }[]
}

test("a message for Slack keeps Slack's limits, and no text mentions a channel or makes a link", () => {
  always((notification) => {
    const { text, blocks } = slackMessage(notification) as SlackMessage
    expect(text.length).toBeLessThanOrEqual(3000)
    expect(blocks.length).toBeLessThanOrEqual(50)
    for (const block of blocks) {
      const most = block.type === "header" ? 150 : 3000
      if (block.text !== undefined) expect(block.text.text.length).toBeLessThanOrEqual(most)
      if (block.fields !== undefined) expect(block.fields.length).toBeLessThanOrEqual(10)
      for (const field of block.fields ?? []) expect(field.text.length).toBeLessThanOrEqual(2000)
      for (const element of block.elements ?? []) expect(element.text.length).toBeLessThanOrEqual(3000)
      const texts = [block.text, ...(block.fields ?? []), ...(block.elements ?? [])].filter((one) => one)
      for (const one of texts) {
        expect(one!.text.length).toBeGreaterThan(0)
        expect(one!.text.isWellFormed()).toBe(true)
        if (one!.type === "plain_text") continue
        expect(one!.verbatim).toBe(true)
        expect(one!.text).not.toMatch(/[<>]/)
        expect(one!.text.replace(/&(amp|lt|gt);/g, "")).not.toContain("&")
      }
    }
    expect(text).not.toMatch(/[<>]/)
  })
})

test("a message for Slack has the summary, the subjects and how many more there are", () => {
  const text = JSON.stringify(slackMessage({ ...PLAIN, summary: "<!channel> 1 & 2" }))
  for (const part of ["*&lt;!channel&gt; 1 &amp; 2*", "*ep_1* since 2031-05-18", "HTTP 500", "and 137 more"])
    expect(text).toContain(part)
})

interface PagerDutyEvent {
  readonly routing_key: string
  readonly event_action: string
  readonly dedup_key: string
  readonly payload?: { readonly summary: string; readonly severity: string; readonly timestamp: string }
}

test("an event for PagerDuty keeps its limits, and only the end of a group resolves", () => {
  always((notification) => {
    const event = pagerDutyEvent(notification, PAGERDUTY) as PagerDutyEvent
    const isEnd = notification.kind === "resolved" && notification.endedAt !== null
    expect(event.event_action).toBe(isEnd ? "resolve" : "trigger")
    expect(event.dedup_key.length).toBeGreaterThan(0)
    expect(event.dedup_key.length).toBeLessThanOrEqual(255)
    expect(JSON.stringify(event).length).toBeLessThan(512 * 1024)
    if (isEnd) return
    expect(event.payload!.summary.length).toBeLessThanOrEqual(1024)
    expect(["critical", "error", "warning", "info"]).toContain(event.payload!.severity)
    expect(Number.isNaN(Date.parse(event.payload!.timestamp))).toBe(false)
  })
  const keys = [`${"k".repeat(300)}1`, `${"k".repeat(300)}2`].map(
    (groupKey) => (pagerDutyEvent({ ...PLAIN, groupKey }, PAGERDUTY) as PagerDutyEvent).dedup_key,
  )
  expect(keys[0]).not.toBe(keys[1])
})

test("a mail's subject is one line of bounded length, and its HTML has no markup of the texts", () => {
  always((notification) => {
    const mail = mailOf(notification, MAIL, "msg_1")
    expect(mail.subject.length).toBeLessThanOrEqual(200)
    expect(mail.subject).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
    expect(mail.html.replace(/<\/?(h2|p|b|table|tr|th|td|ul|li|br)\b[^<>]*>/g, "")).not.toMatch(/[<>]/)
    expect(mail.html).not.toMatch(/<(?!\/?(h2|p|b|table|tr|th|td|ul|li|br)\b)/)
    for (const part of [mail.subject, mail.text, mail.html]) expect(part.isWellFormed()).toBe(true)
    expect(mail.thread).toMatch(/^<posthorn-[0-9a-f]{32}@example\.com>$/)
  })
  const mail = mailOf(PLAIN, MAIL, "msg_1")
  expect(mail.text).toContain("- ep_1, since 2031-05-18T00:00:00.000Z\n  HTTP 500\nand 137 more")
  expect(mail.messageId).toBe("<msg_1@example.com>")
})

test("the payload of a notification can be read again", () => {
  always((notification) => {
    const written = JSON.stringify(writePayload(notification))
    expect(readPayload(bytesOfText(written))).toEqual(JSON.parse(JSON.stringify(notification)))
  })
})
