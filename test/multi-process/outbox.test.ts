/** The outbox: a send inside the user's own transaction exists if and only if that transaction commits. */
import { describe, expect, test } from "vitest"
import { connect, ON_SHARED_SERVERS, open, type Place, Site } from "./site.ts"

const MESSAGE = { eventType: "invoices", payload: { invoice: 1 } }
/** No hint announces what somebody else's transaction commits; the schedule's own look finds it. */
const FOUND_WITHIN_MS = 2000

/** A worker, an endpoint, and a client of the user's in a transaction that has written a row of its own. */
async function openShop(place: Place) {
  const site = await Site.open(place)
  await site.endpoint("invoices")
  await open(place)
  const client = await connect(place.store)
  await client.query("CREATE TABLE invoices (number int)")
  await client.query("BEGIN")
  await client.query("INSERT INTO invoices VALUES (1)")
  const observer = await connect(place.store)
  const count = async (table: string) =>
    Number((await observer.query(`SELECT count(*) FROM ${table}`)).rows[0].count)
  return { site, client, count }
}

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("a send that is rolled back leaves nothing, and only the send after it arrives", async () => {
    const { site, client, count } = await openShop(await place())
    const rolledBack = await site.sender.send("acme", { ...MESSAGE, idempotencyKey: "1" }, { tx: client })
    expect(rolledBack).toMatchObject({ matched: 1, duplicate: false })
    await client.query("ROLLBACK")
    for (const table of ["messages", "webhook_deliveries", "lane_wakes", "idempotency", "invoices"])
      expect(await count(table), table).toBe(0)
    // Its key is free again.
    const sent = await site.sender.send("acme", { ...MESSAGE, idempotencyKey: "1" })
    expect(sent.duplicate).toBe(false)
    await site.receiver.arrived("/invoices", 1)
    expect(site.receiver.requests.map(({ id }) => id)).toEqual([sent.id])
  })

  test("a send that is committed with the user's own rows is delivered within two seconds, and not before the commit", async () => {
    const { site, client, count } = await openShop(await place())
    const { id } = await site.sender.send("acme", MESSAGE, { tx: client })
    const batch = await site.sender.sendBatch("acme", [MESSAGE, MESSAGE], { tx: client })
    expect([await count("invoices"), await count("messages")]).toEqual([0, 0])
    // Looks at the lane while the transaction is open: a wake that is not committed must not be used up.
    const beside = await site.send("invoices")
    await site.receiver.arrived("/invoices", 1)
    const committedAt = performance.now()
    await client.query("COMMIT")
    const requests = await site.receiver.arrived("/invoices", 4)
    expect(requests[0]!.id).toBe(beside)
    expect(new Set(requests.slice(1).map((request) => request.id))).toEqual(
      new Set([id, ...batch.map((result) => result.id)]),
    )
    for (const { at } of requests.slice(1)) {
      expect(at).toBeGreaterThan(committedAt)
      expect(at - committedAt).toBeLessThan(FOUND_WITHIN_MS)
    }
    expect([await count("invoices"), await count("messages")]).toEqual([1, 4])
  })

  test("a message that is refused says why, and a user who goes on without it loses nothing else", async () => {
    const { site, client, count } = await openShop(await place())
    await expect(site.sender.send("nobody", MESSAGE, { tx: client })).rejects.toMatchObject({
      code: "not_found",
      message: 'there is no application "nobody"',
    })
    await expect(
      site.sender.send("acme", { eventType: "", payload: 1 }, { tx: client }),
    ).rejects.toMatchObject({ code: "invalid_input", field: "eventType" })
    const { id } = await site.sender.send("acme", { ...MESSAGE, eventId: "e-1" }, { tx: client })
    await expect(
      site.sender.send("acme", { ...MESSAGE, eventId: "e-1" }, { tx: client }),
    ).rejects.toMatchObject({ code: "conflict", message: 'a message with eventId "e-1" exists already' })
    await client.query("COMMIT")
    await site.receiver.arrived("/invoices", 1)
    expect(site.receiver.requests.map((request) => request.id)).toEqual([id])
    expect(await count("invoices")).toBe(1)
  })

  test("in a transaction that has failed, a send says so", async () => {
    const { site, client } = await openShop(await place())
    await client.query("SELECT 1 / 0").catch(() => {})
    await expect(site.sender.send("acme", MESSAGE, { tx: client })).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("current transaction is aborted"),
    })
  })

  test("a transaction that is no pg client is refused", async () => {
    const { site } = await openShop(await place())
    for (const tx of [null, {}, "client"])
      await expect(site.sender.send("acme", MESSAGE, { tx })).rejects.toMatchObject({
        code: "invalid_input",
        message: "tx must be a client of the package pg, in a transaction",
      })
  })
})
