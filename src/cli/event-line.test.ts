import { expect, test } from "vitest"
import type { PublicEvent } from "../observe/public-events.ts"
import { eventLine } from "./event-line.ts"

const of = (event: object) => eventLine({ at: 0, ...event } as PublicEvent).slice(1)
const ENDPOINT = { webhook_id: "ep_1", failures: 6, last_error: "HTTP 500: no" }

test("a line says what happened, and whether it is good", () => {
  const attempt = { type: "delivery.attempt", ...ENDPOINT, message_id: "msg_1", event_type: "a.b" }
  const failed = { success: false, attempt_count: 2, response_status: null, duration_ms: 9, error: "timeout" }
  expect(of({ ...attempt, ...failed, next_retry_at: 90_000 })).toEqual([
    ["delivery.attempt          ", "bad"],
    ["ep_1", null],
    ["msg_1", null],
    ["a.b", null],
    ["attempt 2: no response in 9 ms, again in 1m 30s: timeout", null],
  ])
  expect(of({ type: "endpoint.breaker.opened", ...ENDPOINT, until: 60_000, report: false }).at(-1)).toEqual([
    "open until 1970-01-01T00:01:00Z, 6 failures in a row: HTTP 500: no",
    null,
  ])
  expect(of({ type: "endpoint.failing", ...ENDPOINT, disables_at: null }).at(-1)).toEqual([
    "6 failures in a row: HTTP 500: no",
    null,
  ])
})

test("a line about an agent has its URL instead of an endpoint", () => {
  const agent = { agent: "hub", app_id: "app_1", version: "my-agent/7", reason: null, detail: null }
  expect(of({ type: "agent.connected", ...agent })).toEqual([
    ["agent.connected           ", "good"],
    ["relay://hub", null],
    ["my-agent/7", null],
  ])
  const ended = { reason: "silent", detail: "the agent did not answer for 45 seconds" }
  expect(of({ type: "agent.disconnected", ...agent, ...ended }).at(-1)![0]).toBe(
    "silent: the agent did not answer for 45 seconds",
  )
})

test("a gap says how many events are missing at most, if that is known", () => {
  expect(of({ type: "gap", reason: "overflow", count: 17 }).at(-1)![0]).toBe(
    "up to 17 events are missing (overflow)",
  )
  expect(of({ type: "gap", reason: "relay", count: null }).at(-1)![0]).toBe("events are missing (relay)")
})

test("an event of another version, without its times, is a line too", () => {
  const line = eventLine({ type: "endpoint.breaker.opened", ...ENDPOINT } as PublicEvent)
  expect(line.map(([text]) => text)).toEqual([
    "-".padEnd(24),
    "endpoint.breaker.opened   ",
    "ep_1",
    "open until it is reset, 6 failures in a row: HTTP 500: no",
  ])
})
