import { expect, test } from "vitest"
import { HEALTHY } from "./protection.ts"
import { type Gate, type Waiting, waitOf } from "./wait.ts"

const NOW = 1_900_000_000_000
const AT = { now: NOW, wall: NOW }
const OPEN: Gate = {
  deleted: false,
  disabled: false,
  paused: false,
  holdUntil: null,
  protection: HEALTHY,
  head: null,
}
const DUE: Waiting = { seq: 2, nextRetryAt: null, deferred: false, dated: false }
const retry = (ms: number): Waiting => ({ ...DUE, nextRetryAt: NOW + ms })
const scheduled = (ms: number): Waiting => ({ ...retry(ms), deferred: true })
const head = (ms: number | null): Gate => ({
  ...OPEN,
  head: { seq: 1, nextRetryAt: ms === null ? null : NOW + ms },
})

test.each<[string, Waiting, Gate, string, number | null]>([
  ["one without a time", DUE, OPEN, "due", 0],
  ["one whose time has come", retry(-5), OPEN, "due", 0],
  ["a retry", retry(5), OPEN, "retry", 5],
  ["a delayed one", scheduled(5), OPEN, "scheduled", 5],
  [
    "one that a Retry-After holds longer than its delay",
    retry(5),
    { ...OPEN, holdUntil: NOW + 9 },
    "held",
    9,
  ],
  ["one that waits longer than the Retry-After", retry(9), { ...OPEN, holdUntil: NOW + 5 }, "retry", 9],
  ["one after a Retry-After that is over", DUE, { ...OPEN, holdUntil: NOW - 5 }, "due", 0],
  ["one behind a head that is retried", DUE, head(7), "behind", 7],
  ["one behind a head that is due", DUE, head(null), "behind", 0],
  ["one behind a head, and a longer hold", DUE, { ...head(7), holdUntil: NOW + 9 }, "held", 9],
  ["the head itself", { ...retry(7), seq: 1 }, head(7), "retry", 7],
  ["one that has not joined the line", scheduled(5), head(7), "scheduled", 5],
  ["one of a paused endpoint", retry(5), { ...OPEN, paused: true }, "paused", null],
  ["one of a disabled endpoint", retry(5), { ...OPEN, paused: true, disabled: true }, "disabled", null],
  ["one of a deleted endpoint", retry(5), { ...OPEN, deleted: true, disabled: true }, "deleted", null],
])("%s says why it waits, and until when", (_, waiting, gate, reason, ms) => {
  expect(waitOf(waiting, gate, false, AT)).toEqual({ reason, at: ms === null ? null : NOW + ms })
  expect(waitOf(waiting, gate, true, AT)).toEqual({ reason: "sending", at: null })
})

const absent = (ms: number | null) => ({ givenUpAt: ms === null ? null : NOW + ms })

test.each<[string, Waiting, Gate, { givenUpAt: number | null }, string, number | null]>([
  ["is due", DUE, OPEN, absent(60), "agent", 60],
  ["will be retried", retry(5), OPEN, absent(60), "agent", 60],
  ["waits behind another one", DUE, head(7), absent(60), "agent", 60],
  ["is held", DUE, { ...OPEN, holdUntil: NOW + 9 }, absent(60), "agent", 60],
  ["never ends by age", DUE, OPEN, absent(null), "agent", null],
  ["is given up at any moment", DUE, OPEN, absent(0), "agent", null],
  ["was delayed until now", scheduled(0), OPEN, absent(60), "agent", 60],
  ["is delayed", scheduled(5), OPEN, absent(60), "scheduled", 5],
  ["is paused", DUE, { ...OPEN, paused: true }, absent(60), "paused", null],
])("without its agent, a delivery that %s waits for it until it is given up", (_, waiting, gate, agent, reason, ms) => {
  const at = ms === null ? null : NOW + ms
  expect(waitOf(waiting, gate, false, AT, agent)).toEqual({ reason, at })
  expect(waitOf(waiting, gate, true, AT, agent)).toEqual({ reason: "sending", at: null })
})

test("a date is shown as it was given, and has come when the wall clock says so", () => {
  const dated = { ...scheduled(600_000), dated: true }
  const back = { now: NOW, wall: NOW - 3_600_000 }
  expect(waitOf(dated, OPEN, false, back)).toEqual({ reason: "scheduled", at: NOW + 600_000 })
  expect(waitOf(dated, { ...OPEN, holdUntil: NOW + 700_000 }, false, back).reason).toBe("scheduled")
  expect(waitOf(dated, OPEN, false, { now: NOW, wall: NOW + 600_000 })).toEqual({ reason: "due", at: NOW })
})
