/** Whether the server is alive, and whether it can do its work. */
import { expect, test } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import type { Store } from "../../src/store/store.ts"
import { Desk } from "../cli/posthorn.ts"
import { TestClock } from "../support/clock.ts"
import { migratedDatabase } from "../support/migrated-database.ts"
import { ownRedis } from "../support/servers/redis.ts"
import { ApiServer } from "./support/server.ts"

/** A store that can be told to refuse writes, and counts how often it is asked. */
function failing() {
  const state = { fails: false, asked: 0 }
  const wrapStore = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        if (name !== "check") return value.bind(target)
        return async () => {
          state.asked++
          if (state.fails) throw new PosthornError("store_full", "the disk at /secret is full")
          return value.call(target)
        }
      },
    })
  return { state, wrapStore }
}

test("healthy while the store writes, without a key, also as HEAD", async () => {
  const server = await ApiServer.start()
  const ok = { status: "ok" }
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({
    status: 200,
    body: { database: ok, queue: ok, cache: ok },
  })
  expect(await server.call("HEAD", "/health/", { key: null })).toMatchObject({ status: 200, text: "" })
  for (const method of ["GET", "HEAD"])
    expect(await server.call(method, "/health/ping", { key: null })).toMatchObject({ status: 204 })
})

test("not while it does not, and again when it does; who asks at once shares the answer", async () => {
  const { state, wrapStore } = failing()
  const clock = new TestClock()
  const server = await ApiServer.start({ wrapStore, clock, options: { deliver: false } })
  state.fails = true
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => server.call("GET", "/health", { key: null })),
  )
  for (const { status, body, text } of answers) {
    expect({ status, body }).toMatchObject({ status: 503, body: { database: { status: "error" } } })
    expect(text).not.toContain("/secret")
  }
  expect(state.asked).toBe(1)
  expect(await server.call("GET", "/health/ping", { key: null })).toMatchObject({ status: 204 })
  state.fails = false
  clock.advance(1000)
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({ status: 200 })
})

test.each([
  ["delivers", true],
  ["does not deliver", false],
])("a process that %s says that the schedule's Redis is away, and goes on being ready: library, HTTP, command line", async (_what, deliver) => {
  const redis = await ownRedis()
  const options = { store: await migratedDatabase(), schedule: redis.url, deliver }
  const clock = new TestClock()
  const server = await ApiServer.start({ clock, options })
  const desk = new Desk({ POSTHORN_SERVER: server.url })
  const ok = { status: "ok" }
  const healthy = { database: ok, queue: ok, cache: ok }
  expect(await server.posthorn.health()).toEqual({ ready: true, problem: null })
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({ status: 200, body: healthy })
  await redis.kill()
  const problem = expect.stringMatching(/redis:\/\/127\.0\.0\.1:\d+.*ECONNREFUSED/)
  await expect.poll(() => server.posthorn.health(), { timeout: 10_000 }).toEqual({ ready: true, problem })
  clock.advance(1000)
  const degraded = { ...healthy, queue: { status: "error" } }
  const answer = await server.call("GET", "/health", { key: null })
  // Ready: a load balancer keeps sending. Where Redis is, is nobody's business here.
  expect(answer).toMatchObject({ status: 200, body: degraded })
  expect(answer.text).not.toContain("redis")
  const typed = await desk.posthorn(["health", "--json"])
  expect({ ...typed, stdout: JSON.parse(typed.stdout) }).toEqual({ code: 0, stdout: degraded, stderr: "" })

  await redis.start()
  await expect
    .poll(() => server.posthorn.health(), { timeout: 10_000 })
    .toEqual({ ready: true, problem: null })
  clock.advance(1000)
  expect(await server.call("GET", "/health", { key: null })).toMatchObject({ status: 200, body: healthy })
})
