/** The health of endpoints as somebody types for it. */
import { expect, test } from "vitest"
import { shortWhy } from "../../src/cli/commands/endpoint-health.ts"
import { World } from "./world.ts"

const PATIENCE = { timeout: 60_000 }

/** More endpoints: an open and a disabled endpoint, and an endpoint of another application. */
async function start() {
  const world = await World.start()
  const { applications, endpoints } = world.server.posthorn
  const url = world.receiver.url("/")
  await endpoints.create("acme", { uid: "open", url, eventTypes: ["none"] })
  await endpoints.trip("acme", "open")
  await endpoints.create("acme", { uid: "disabled", url, disabled: true })
  await applications.create({ uid: "other", name: "Other" })
  await endpoints.create("other", { uid: "elsewhere", url })
  await world.deadLetter()
  const show = async (...args: string[]) => {
    const { code, stdout, stderr } = await world.desk.posthorn(["endpoints", ...args])
    expect([code, stderr]).toEqual([0, ""])
    return stdout.trimEnd().split("\n")
  }
  /** The first words of the rows: endpoint and state. */
  const states = async (...args: string[]) => {
    const [, ...rows] = await show(...args)
    return rows.map((row) => row.replace(/^app_\w+ +/, "").split(/ +/, 2))
  }
  return { world, show, states }
}

const OF_ACME = [
  ["disabled", "disabled"],
  ["paused", "paused"],
  ["open", "open"],
  ["down", "degraded"],
  ["main", "healthy"],
]

test("the endpoints of an application, and of all, the worst first", PATIENCE, async () => {
  const { world, show, states } = await start()
  const [head, ...rows] = await show("list", "acme", "--health")
  expect(head).toMatch(/^ENDPOINT +HEALTH +SINCE +1H +24H +P95 +FAILURES +OLDEST WAITING +WHY$/)
  expect(rows[0]).toMatch(/^disabled +disabled +\d{4}-\S+Z .* disabled by hand$/)
  expect(rows[3]).toMatch(
    /^down +degraded +\S+Z +0 % +0 % +\d+ ms +1 +– +0 % of 1 attempt in the last hour succeeded; last error: HTTP 500$/,
  )
  expect(await states("list", "acme", "--health")).toEqual(OF_ACME)
  const all = [...OF_ACME, ["elsewhere", "healthy"]]
  expect(await states("--health")).toEqual(all)
  expect(await states("--health", "--all")).toEqual(all)
  expect((await show("--health"))[0]).toMatch(/^APP +ENDPOINT +HEALTH /)
  expect(await states("--health", "--state", "open")).toEqual([["open", "open"]])
  for (const [limit, done] of [
    [2, false],
    [4, false],
    [5, false],
    [6, true],
  ] as const) {
    const { stdout } = await world.desk.posthorn(["endpoints", "--health", "--limit", `${limit}`, "--json"])
    const list = JSON.parse(stdout)
    expect(list.data.map((one: { endpointUid: string }) => one.endpointUid)).toEqual(
      all.slice(0, limit).map(([uid]) => uid),
    )
    expect(list.done).toBe(done)
  }
})

test("one endpoint, line by line", PATIENCE, async () => {
  const { world, show } = await start()
  const lines = await show("health", "acme", "down")
  const text = lines.join("\n")
  expect(text).toMatch(/^endpointUid +down$/m)
  expect(text).toMatch(/^health +degraded$/m)
  expect(text).toMatch(/^why +0 % of 1 attempt in the last hour succeeded; last error: HTTP 500$/m)
  expect(text).toMatch(/^lastHour +0 % of 1 succeeded, p95 \d+ ms$/m)
  expect(text).toMatch(/^failures +1$/m)
  expect((await show("health", "acme", "paused")).join("\n")).toMatch(/^lastDay +no attempts$/m)
  const { stdout } = await world.desk.posthorn(["endpoints", "health", "acme", "down", "--json"])
  expect(JSON.parse(stdout)).toMatchObject({ health: "degraded", lastHour: { attempts: 1, successRate: 0 } })
})

test("a limit of 0 is refused, as in every list", PATIENCE, async () => {
  const { desk } = await World.start()
  const refused = await desk.posthorn(["endpoints", "list", "acme", "--limit", "0"])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("must be >= 1") })
  expect(await desk.posthorn(["endpoints", "--health", "--limit", "0"])).toEqual(refused)
})

test.each([
  ["12.5 % of 8 attempts in the last hour succeeded; last error: HTTP 500", "last error: HTTP 500"],
  ["100 % of 1 attempt in the last hour succeeded", "100 % of 1 attempt in the last hour succeeded"],
  [
    "the last 5 attempts failed; last error: a; b; without a success it is disabled at 2026-03-06T12:00:00Z",
    "last error: a; b; without a success it is disabled at 2026-03-06T12:00:00Z; the last 5 attempts failed",
  ],
])("on a narrow terminal the reason begins with the last error: %s", (why, short) => {
  expect(shortWhy(why)).toBe(short)
})

test.each<[string, readonly string[], RegExp]>([
  ["no application and no --health", ["list"], /<app> is missing; without it, give --health/],
  ["--state without --health", ["list", "acme", "--state", "open"], /--state needs --health/],
  ["--state alone", ["--state", "open"], /--state needs --health/],
  ["an unknown state", ["--health", "--state", "sick"], /--state must be one of healthy, degraded, failing/],
  ["a flag without an action", ["--limit", "1"], /<app> is missing/],
])("%s is refused", PATIENCE, async (_what, args, message) => {
  const world = await World.empty()
  const { code, stderr } = await world.desk.posthorn(["endpoints", ...args])
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
})
