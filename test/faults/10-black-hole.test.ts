/**
 * Fault 10: PostgreSQL is gone without a reset: bytes get nowhere, and nothing is closed. The table's 60 seconds are scaled to seven,
 * longer than any call may take.
 */
import { expect, test } from "vitest"
import { proxied } from "../multi-process/proxied.ts"
import { ON_SHARED_SERVERS, open, Site } from "../multi-process/site.ts"
import { migratedDatabase } from "../support/migrated-database.ts"

const HOLE_MS = 7000
const NOTICED_MS = 5000
/** A call that timed out, and an attempt to connect that did. */
const READ_MS = 10_000
const AT_ONCE_MS = 100
const RECOVERED_MS = 5000
/** The second that `open` gives to requests in flight, and two calls that time out one after the other. */
const CLOSED_MS = 11_000

async function surviveHole(site: Site): Promise<void> {
  await site.endpoint("a")
  await site.endpoint("under-way")
  const { proxy, place: through } = await proxied(site.place)
  const posthorn = await open(through)
  const answer = site.receiver.hold("/under-way")
  const sent = [await site.send("under-way")]
  await site.receiver.arrived("/under-way", 1)

  proxy.blackHole()
  const holeAt = performance.now()
  const send = () => posthorn.send("acme", { eventType: "a", payload: {} })
  const refusal = {
    code: "store_unavailable",
    message: expect.stringMatching(/^PostgreSQL cannot be reached .*: nothing is lost; try again$/),
  }
  const first = await Promise.allSettled([send(), send(), posthorn.health()])
  expect(performance.now() - holeAt).toBeLessThan(NOTICED_MS)
  expect(first[0]).toMatchObject({ status: "rejected", reason: refusal })
  expect(first[1]).toMatchObject({ status: "rejected", reason: refusal })
  expect(first[2]).toMatchObject({ value: { ready: false, problem: refusal.message } })
  // Noticed once: from then on nobody waits.
  answer(200)
  while (performance.now() - holeAt < HOLE_MS) {
    const askedAt = performance.now()
    await expect(send()).rejects.toMatchObject(refusal)
    expect(performance.now() - askedAt).toBeLessThan(AT_ONCE_MS)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }

  proxy.heal()
  const healedAt = performance.now()
  await expect
    .poll(() => posthorn.health(), { timeout: RECOVERED_MS })
    .toEqual({ ready: true, problem: null })
  sent.push((await send()).id)
  await site.receiver.arrived("/a", 1)
  expect(performance.now() - healedAt).toBeLessThan(RECOVERED_MS)
  // Outcomes from the time of the black hole are written, and every accepted message is delivered.
  await expect
    .poll(() => site.sender.stats(), { timeout: 5000 })
    .toMatchObject({ pending: 0, failed: 0, dead: 0 })
  const received = site.receiver.requests.map(({ id }) => id)
  expect(new Set(received).size).toBe(received.length)
  expect(received).toEqual(expect.arrayContaining(sent))
}

test("calls time out within five seconds, sends are refused and do not hang, and it recovers by itself", async () => {
  // At the same time: most of it is waiting.
  await Promise.all(ON_SHARED_SERVERS.map(async ([, place]) => surviveHole(await Site.open(await place()))))
}, 40_000)

test("reading, which may take long, times out when the server is known to be gone", async () => {
  const { proxy, place: through } = await proxied({ store: await migratedDatabase() })
  const posthorn = await open({ ...through, deliver: false })
  await posthorn.stats()
  proxy.blackHole()
  const holeAt = performance.now()
  const refusal = { status: "rejected", reason: { code: "store_unavailable" } }
  const reads = [posthorn.stats(), posthorn.applications.list(), posthorn.dead.list()]
  // As everywhere, something is being sent as well.
  const asked = await Promise.allSettled([...reads, posthorn.send("acme", { eventType: "a", payload: {} })])
  expect(asked).toMatchObject([refusal, refusal, refusal, refusal])
  expect(performance.now() - holeAt).toBeLessThan(READ_MS)
})

test("closing ends in a black hole, with requests in flight and outcomes that cannot be written", async () => {
  const site = await Site.open({ store: await migratedDatabase() })
  for (const lane of ["a", "b"]) await site.endpoint(lane)
  const { proxy, place: through } = await proxied(site.place)
  const posthorn = await open(through)
  const [answer] = [site.receiver.hold("/a"), site.receiver.hold("/b")]
  for (const lane of ["a", "b"]) {
    await site.send(lane)
    await site.receiver.arrived(`/${lane}`, 1)
  }
  proxy.blackHole()
  answer(200)
  const closingAt = performance.now()
  await posthorn.close()
  expect(performance.now() - closingAt).toBeLessThan(CLOSED_MS)
})
