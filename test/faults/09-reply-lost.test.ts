/** Fault 9: the reply to what accepts a message is lost. The send is refused, and its retry with the same key makes no second message. */
import pg from "pg"
import { describe, expect, test } from "vitest"
import { proxied } from "../multi-process/proxied.ts"
import { ON_SHARED_SERVERS, open, type Place, Site } from "../multi-process/site.ts"
import { SEARCH_PATH } from "../support/ground.ts"
import { migratedDatabase } from "../support/migrated-database.ts"

/** A sender behind a proxy, and a worker that is not. */
async function openThroughProxy(place: Place) {
  const site = await Site.open(place)
  await site.endpoint("a")
  await open(place)
  const { proxy, place: through } = await proxied(place)
  const sender = await open({ ...through, deliver: false })
  // Once before: the statement is then known by its name alone, and the table for the keys is made.
  await sender.send("acme", { eventType: "nobody", payload: {}, idempotencyKey: "first" })
  // The next one is made in the background, with a COMMIT of its own.
  const client = new pg.Client({ connectionString: place.store, options: SEARCH_PATH })
  await client.connect()
  const tables = async () =>
    (await client.query("SELECT FROM pg_inherits WHERE inhparent = 'idempotency'::regclass")).rowCount
  await expect.poll(tables).toBeGreaterThan(1)
  await client.end()
  return { site, proxy, sender }
}

const MESSAGE = { eventType: "a", payload: { n: 1 } }

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("a send whose reply is lost is refused; the retry finds what was committed", async () => {
    const { site, proxy, sender } = await openThroughProxy(await place())
    const message = { ...MESSAGE, idempotencyKey: "once" }
    const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("messages.accept"))
    await expect(sender.send("acme", message)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/^PostgreSQL cannot be reached .*: nothing is lost; try again$/),
    })
    await lost
    const answer = await retried(() => sender.send("acme", message))
    expect(answer).toMatchObject({ matched: 1, duplicate: true })
    expect((await site.sender.messages.list("acme", { eventType: "a" })).data.map(({ id }) => id)).toEqual([
      answer.id,
    ])
    await site.receiver.arrived("/a", 1)
    await expect
      .poll(() => site.sender.stats())
      .toEqual({ pending: 0, failed: 0, delivered: 1, dead: 0, calledOff: 0 })
    expect(site.receiver.requests.map(({ id }) => id)).toEqual([answer.id])
  })

  test("many sends at once that lose their common reply: each retry gets the message of its own key", async () => {
    const { site, proxy, sender } = await openThroughProxy(await place())
    const messages = Array.from({ length: 20 }, (_, n) => ({
      eventType: "a",
      payload: { n },
      idempotencyKey: `key-${n}`,
    }))
    const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("messages.accept"))
    const refused = await Promise.allSettled(messages.map((message) => sender.send("acme", message)))
    expect(refused.map((result) => result.status === "rejected" && result.reason.code)).toEqual(
      new Array(20).fill("store_unavailable"),
    )
    await lost
    const answers = await Promise.all(messages.map((message) => retried(() => sender.send("acme", message))))
    expect(answers.map(({ duplicate }) => duplicate)).toEqual(new Array(20).fill(true))
    const requests = await site.receiver.arrived("/a", 20)
    const payloads = new Map(requests.map(({ id, body }) => [id, JSON.parse(body.toString())]))
    expect(answers.map(({ id }) => payloads.get(id))).toEqual(messages.map(({ payload }) => payload))
  })

  test("a batch whose COMMIT has no answer is refused as a whole; the retry makes none of it twice", async () => {
    const { site, proxy, sender } = await openThroughProxy(await place())
    const batch = [1, 2, 3].map((n) => ({ eventType: "a", payload: { n }, idempotencyKey: `key-${n}` }))
    const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("COMMIT"))
    await expect(sender.sendBatch("acme", batch)).rejects.toMatchObject({ code: "store_unavailable" })
    await lost
    const answers = await retried(() => sender.sendBatch("acme", batch))
    expect(answers.map(({ duplicate }) => duplicate)).toEqual([true, true, true])
    await site.receiver.arrived("/a", 3)
    expect((await site.sender.messages.list("acme", { eventType: "a" })).data).toHaveLength(3)
  })
})

test("opening when the connection that listens breaks is refused like every other trouble", async () => {
  const { proxy, place: through } = await proxied({ store: await migratedDatabase() })
  const lost = proxy.dropRepliesAfter((bytes) => bytes.includes("LISTEN"))
  await expect(open(through)).rejects.toMatchObject({ name: "PosthornError", code: "store_unavailable" })
  await lost
})

/** As a client does it: refused as unavailable, it asks again, for some seconds. */
async function retried<T>(send: () => Promise<T>): Promise<T> {
  const answer = await expect
    .poll(() => send().catch((error) => error.code), { timeout: 5000, interval: 20 })
    .not.toBe("store_unavailable")
    .then(send)
  return answer
}
