import { existsSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { temporaryFolder } from "../../../test/support/combination.ts"
import { PosthornError } from "../../core/errors.ts"
import { Channel } from "./channel.ts"
import { openSqliteStore } from "./store.ts"

const CALLERS = 256
const ANSWERS = 10_000

test("no caller is answered twice in one tick of the event loop", async () => {
  const store = await openSqliteStore({ path: ":memory:", own: true, onLost() {} })
  onTestFinished(() => store.close())
  let answers = 0
  let most = 0
  const turn = (before: number) => {
    most = Math.max(most, answers - before)
    if (answers < ANSWERS) setImmediate(turn, answers)
  }
  turn(0)
  /** The work after an answer takes longer than the thread's next answer. */
  const work = () => {
    const until = performance.now() + 0.03
    while (performance.now() < until) {}
  }
  const caller = async () => {
    for (; answers < ANSWERS; answers++) {
      await store.openTokens()
      work()
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  await nextTurn()
  expect(most).toBeLessThanOrEqual(CALLERS)
})

test("calls committed before the close are answered, also when the event loop was blocked", async () => {
  const channel = await Channel.open({ path: ":memory:", role: "owner" }, () => {})
  const tokens = Array.from({ length: 20 }, () => channel.call("openTokens", []))
  const closed = channel.close()
  const until = performance.now() + 100
  while (performance.now() < until) {}
  expect(await Promise.all(tokens)).toHaveLength(20)
  await closed
})

test("a close after the end waits until the thread has closed its connection", async () => {
  const path = join(temporaryFolder(), "posthorn.db")
  const channel = await Channel.open({ path, role: "owner" }, () => {})
  const ended = channel.end(new PosthornError("store_failed", "the file failed"))
  expect(await channel.close()).toBe(false)
  // Without a guard the last connection deletes the log.
  expect(existsSync(`${path}-wal`)).toBe(false)
  await ended
})

test("an answer that arrives after the end of its call is ignored", async () => {
  const channel = await Channel.open({ path: ":memory:", role: "owner" }, () => {})
  const call = channel.call("openTokens", [])
  await nextTurn()
  const until = performance.now() + 50
  while (performance.now() < until) {}
  const ended = channel.end(new PosthornError("store_failed", "the file failed"))
  await expect(call).rejects.toThrow("the file failed")
  await ended
})
