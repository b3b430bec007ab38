import { expect, test } from "vitest"
import { TestClock } from "../test/support/clock.ts"
import type { Health, Posthorn } from "./posthorn.ts"
import { sharedHealth } from "./shared-health.ts"

function start() {
  const clock = new TestClock()
  const checks: PromiseWithResolvers<Health>[] = []
  const health = () => {
    checks.push(Promise.withResolvers())
    return checks.at(-1)!.promise
  }
  return { clock, checks, ask: sharedHealth({ context: { clock }, health } as unknown as Posthorn) }
}

test("a check is shared for a moment, and for as long as the store does not answer", async () => {
  const { clock, checks, ask } = start()
  const answers = [ask(), ask()]
  clock.advance(60_000)
  answers.push(ask())
  expect(checks).toHaveLength(1)
  checks[0]!.resolve({ ready: true, problem: null })
  for (const answer of answers) expect(await answer).toEqual({ ready: true, problem: null })
  answers.push(ask())
  expect(checks).toHaveLength(2)
  checks[1]!.resolve({ ready: false, problem: "no" })
  expect(await answers[3]).toEqual({ ready: false, problem: "no" })
  clock.advance(249)
  expect(await ask()).toEqual({ ready: false, problem: "no" })
  expect(checks).toHaveLength(2)
  clock.advance(1)
  void ask()
  expect(checks).toHaveLength(3)
})

test("a check that fails is followed by another one", async () => {
  const { clock, checks, ask } = start()
  const asked = ask()
  checks[0]!.reject(new Error("no"))
  await expect(asked).rejects.toThrow("no")
  clock.advance(250)
  void ask()
  expect(checks).toHaveLength(2)
})
