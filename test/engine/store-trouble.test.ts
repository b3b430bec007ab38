/** A store that cannot be read for a while: the log says so, and not once for each try. */
import { expect, test } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import type { Store } from "../../src/store/store.ts"
import { Harness } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"

test("polls that fail for half a minute have one line, and one when they work again", async () => {
  const log = new LogLines()
  const state = { fails: false }
  const wrapStore = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        if (name !== "changedOutside") return value.bind(target)
        return async () => {
          if (state.fails) throw new PosthornError("store_unavailable", "the store is away")
          return value.call(target)
        }
      },
    })
  const harness = await Harness.start({ logger: log.logger, wrapStore })
  state.fails = true
  for (let poll = 0; poll < 6; poll++) {
    await harness.poll()
    harness.clock.advance(5000)
  }
  state.fails = false
  await harness.poll()
  expect(log.about("The poll")).toMatchObject([
    {
      level: 40,
      msg: "The poll could not read the store; trying again",
      err: { message: "the store is away" },
    },
    { level: 40, msg: "The poll can read the store again", lasted_ms: expect.any(Number) },
  ])
})
