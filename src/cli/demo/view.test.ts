import { stripVTControlCharacters } from "node:util"
import { expect, test } from "vitest"
import type { Attempt, Delivery } from "../../index.ts"
import { ENDPOINTS, EVENTS } from "./endpoints.ts"
import { narrate } from "./narrate.ts"
import { CHAPTERS, DemoState } from "./state.ts"
import { heading, logLine, table } from "./view.ts"

const COLUMNS = 80
const ROWS = 24
const NOW = Date.UTC(2031, 4, 18)

/** As full as it gets: every endpoint has every event, with two-digit attempts and the longest cause. */
function fullShow(): DemoState {
  const state = new DemoState("/tmp/posthorn-demo-abcdef/posthorn.db")
  state.engine = "running, pid 4194304"
  const deliveries: Partial<Delivery>[] = []
  const attempts: Partial<Attempt>[] = []
  for (const { uid } of ENDPOINTS) {
    state.uids.set(`ep_${uid}`, uid)
    for (const [i] of EVENTS.entries()) {
      state.numbers.set(`msg_${i}`, i + 1)
      const nextRetryAt = new Date(NOW + 12_345)
      const row = { endpointId: `ep_${uid}`, messageId: `msg_${i}`, attemptCount: 99, nextRetryAt }
      deliveries.push({ ...row, status: "failed" })
      attempts.push({
        endpointId: row.endpointId,
        status: "failed",
        responseStatus: null,
        error: "response_too_large",
      })
    }
  }
  const counts = { pending: 100, failed: 100, delivered: 100, dead: 100, calledOff: 0 }
  state.snapshot = { deliveries: deliveries as Delivery[], attempts: attempts as Attempt[], counts }
  return state
}

test.each(CHAPTERS)("the screen fits 80 columns and leaves eight lines for the log: %s", (chapter) => {
  const state = fullShow()
  state.chapter = chapter
  const lines = [...heading(state, NOW), "", ...table(state, NOW), ""].map(stripVTControlCharacters)
  expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(COLUMNS)
  expect(lines.length).toBeLessThanOrEqual(ROWS - 8)
})

test("the table shows how each delivery stands, the last answer and when the next try is due", () => {
  const state = fullShow()
  const [first, second, ...others] = state.snapshot.deliveries.filter(
    ({ endpointId }) => endpointId === "ep_flaky",
  )
  const row = [
    { ...first!, status: "delivered" as const, attemptCount: 4 },
    { ...second!, attemptCount: 2 },
    ...others,
  ]
  state.snapshot = { ...state.snapshot, deliveries: row }
  const line = table(state, NOW)
    .map(stripVTControlCharacters)
    .find((text) => text.startsWith(" flaky"))
  expect(line).toMatch(/✓4 +↻2 +↻99 +↻99 +response_too_la… +12\.3 s$/)
})

test("what a receiver answers cannot reach the terminal as anything but text", () => {
  const state = fullShow()
  narrate(state, {
    type: "delivery.attempt",
    webhook_delivery_id: "dlv_1",
    webhook_id: "ep_flaky",
    app_id: "app_1",
    org_id: "org_1",
    message_id: "msg_1",
    session_id: null,
    event_type: "invoice.sent",
    attempt_count: 1,
    at: NOW,
    attempt_id: "atmpt_1",
    success: false,
    response_status: 500,
    error: "HTTP 500: \x1b]0;owned\x07\x1b[2J",
    duration_ms: 3,
    endpoint_disabled: false,
    next_retry_at: NOW + 500,
  })
  const line = stripVTControlCharacters(logLine(state.lines[0]!, COLUMNS))
  expect(line).toContain("HTTP 500: \\x1b]0;owned\\x07\\x1b[2J")
  expect(logLine(state.lines[0]!, COLUMNS)).not.toContain("\x07")
  expect([...line].length).toBeLessThanOrEqual(COLUMNS)
})
