import { expect, test } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import type { AgentOutcome } from "./outcome.ts"
import { Remembered } from "./remembered.ts"

const outcome = (result: AgentOutcome["result"], body = ""): AgentOutcome => ({
  result,
  status: 200,
  error: null,
  retryAfterSeconds: null,
  response: { body },
})

const attempt = (number: number, manual = false) => ({ attempt: number, manual })

test("a retry that an operator asked for runs the handler, and is remembered itself", () => {
  const remembered = new Remembered(new TestClock())
  remembered.keep("dlv_1", attempt(1), outcome("permanent"))
  expect(remembered.find("dlv_1", attempt(1, true))).toBeNull()
  const after = outcome("success")
  remembered.keep("dlv_1", attempt(1, true), after)
  expect(remembered.find("dlv_1", attempt(1, true))).toBe(after)
})

test("final outcomes are kept for an hour, and until they are settled", () => {
  const clock = new TestClock()
  const remembered = new Remembered(clock)
  const [success, permanent] = [outcome("success"), outcome("permanent")]
  remembered.keep("dlv_1", attempt(2), success)
  remembered.keep("dlv_2", attempt(1), permanent)
  remembered.keep("dlv_3", attempt(1), outcome("transient"))
  clock.advance(3_599_999)
  expect(remembered.find("dlv_1", attempt(2))).toBe(success)
  expect(remembered.find("dlv_1", attempt(3))).toBe(success)
  expect(remembered.find("dlv_1", attempt(1))).toBeNull()
  expect(remembered.find("dlv_2", attempt(1))).toBe(permanent)
  expect(remembered.find("dlv_3", attempt(1))).toBeNull()
  remembered.forget("dlv_2")
  expect(remembered.find("dlv_2", attempt(1))).toBeNull()
  clock.advance(1)
  expect(remembered.find("dlv_1", attempt(2))).toBeNull()
})

test("a million outcomes take bounded memory, and the latest are kept", () => {
  const remembered = new Remembered(new TestClock())
  const kept = () => {
    let count = 0
    for (let i = 0; i < 1_000_000; i++) if (remembered.find(`dlv_${i}`, attempt(1)) !== null) count++
    return count
  }
  for (let i = 0; i < 1_000_000; i++) remembered.keep(`dlv_${i}`, attempt(1), outcome("success"))
  expect(kept()).toBeLessThanOrEqual(8192)
  expect(kept()).toBeGreaterThan(1000)
  const large = outcome("success", "a".repeat(65_536))
  for (let i = 0; i < 1000; i++) remembered.keep(`dlv_${i}`, attempt(1), large)
  expect(remembered.find("dlv_999", attempt(1))).not.toBeNull()
  expect(remembered.find("dlv_960", attempt(1))).not.toBeNull()
  expect(remembered.find("dlv_800", attempt(1))).toBeNull()
})
