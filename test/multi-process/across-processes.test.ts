/** Events and changes of endpoints in one process reach the others at once. */
import { describe, expect, onTestFinished, test } from "vitest"
import { EVENT_NAMES, type PublicEvent, type WebhookEvent } from "../../src/observe/public-events.ts"
import type { Posthorn } from "../../src/posthorn.ts"
import { ON_SHARED_SERVERS, open, Site } from "./site.ts"

/** Far shorter than any poll: what comes within it was told, not found. */
const AT_ONCE_MS = 1000

const TWENTY = Array.from({ length: 20 }, (_, n) => ({ eventType: "lane", payload: n }))

/** Everything that is published to a process, and a promise of the first like this. */
function listen(posthorn: Posthorn) {
  const events: WebhookEvent[] = []
  const watchers = new Set<() => void>()
  onTestFinished(
    posthorn.on("gateway:webhooks", (event) => {
      events.push(event)
      for (const watcher of watchers) watcher()
    }),
  )
  const heard = (type: WebhookEvent["type"], messageId: string) =>
    new Promise<WebhookEvent>((resolve) => {
      const check = () => {
        const found = events.find((event) => event.type === type && event.message_id === messageId)
        if (found === undefined) return
        watchers.delete(check)
        resolve(found)
      }
      watchers.add(check)
      check()
    })
  return { events, heard }
}

const OF_ENDPOINTS = EVENT_NAMES.filter((name) => name.startsWith("endpoint."))

/** All events of endpoints that a process is told of, and a promise of the first of a type. */
function tell(posthorn: Posthorn) {
  const events: PublicEvent[] = []
  const first = new Map(OF_ENDPOINTS.map((name) => [name, Promise.withResolvers<void>()]))
  for (const name of OF_ENDPOINTS)
    onTestFinished(
      posthorn.on(name, (event: PublicEvent) => {
        events.push(event)
        first.get(name)!.resolve()
      }),
    )
  return { events, until: (name: PublicEvent["type"]) => first.get(name)!.promise }
}

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("a process that does not deliver hears of attempts, deliveries and dead letters, each once", async () => {
    const site = await Site.open(await place())
    const endpointId = await site.endpoint("good")
    await site.endpoint("bad")
    site.receiver.always("/bad", 500)
    await site.worker({ retry: { delays: [0.01], maxAttempts: 2 } })
    const [here, elsewhere] = [listen(site.sender), listen(await open({ ...site.place, deliver: false }))]
    const good = await site.send("good")
    const bad = await site.send("bad")
    for (const { events, heard } of [here, elsewhere]) {
      expect(await heard("delivery.delivered", good)).toMatchObject({
        webhook_id: endpointId,
        event_type: "good",
        attempt_count: 1,
        response_status: 200,
      })
      expect(await heard("delivery.dead", bad)).toMatchObject({
        reason: "exhausted",
        last_error: "HTTP 500: answer 500",
      })
      expect(events.map(({ type, message_id }) => [type, message_id]).sort()).toEqual(
        [
          ["delivery.attempt", good],
          ["delivery.delivered", good],
          ["delivery.attempt", bad],
          ["delivery.attempt", bad],
          ["delivery.dead", bad],
        ].sort(),
      )
    }
  })

  test("a thousand events reach another process, none of them twice", async () => {
    const site = await Site.open(await place())
    await site.endpoint("many")
    await site.worker()
    const { events, heard } = listen(site.sender)
    const messages = Array.from({ length: 500 }, (_, n) => ({ eventType: "many", payload: n }))
    const sent = (await site.sender.sendBatch("acme", messages)).map(({ id }) => id)
    for (const id of sent) await heard("delivery.delivered", id)
    expect(events.filter(({ type }) => type === "delivery.delivered")).toHaveLength(500)
    expect(events.filter(({ type }) => type === "delivery.attempt")).toHaveLength(500)
  })

  test("events of a worker's first moments reach processes that listened before it started", async () => {
    const site = await Site.open(await place())
    await site.endpoint("waiting")
    const { heard } = listen(site.sender)
    const id = await site.send("waiting")
    await site.worker()
    await heard("delivery.delivered", id)
  })

  test("a process that does not deliver hears of an endpoint's outage, its end, and its disabling, each once", async () => {
    const site = await Site.open(await place())
    const retry = { delays: [0.05], maxAttempts: 100, breaker: { failures: 2, open: 1, maxOpen: 1 } }
    const id = await site.endpoint("down", { retry })
    const told = tell(site.sender)
    site.receiver.queue("/down", 500, 500, 200, 410)
    await site.worker()
    await site.send("down")
    await told.until("endpoint.recovered")
    await told.until("endpoint.breaker.closed")
    await site.send("down")
    await told.until("endpoint.disabled")
    const events = told.events.map((event) => [event.type, "webhook_id" in event && event.webhook_id])
    const types = [
      "breaker.opened",
      "failing",
      "breaker.half_open",
      "breaker.closed",
      "recovered",
      "disabled",
    ]
    expect(events.toSorted()).toEqual(types.map((type) => [`endpoint.${type}`, id]).toSorted())
    expect(told.events.at(-1)).toMatchObject({ reason: "gone", since: expect.any(Number) })
    await site.sender.endpoints.enable("acme", "down")
    await site.send("down")
    await site.receiver.arrived("/down", 5)
  })

  test("a discard that one process asks for is made by another, which sends again at once", async () => {
    const site = await Site.open(await place())
    await site.endpoint("lane", { disabled: true })
    await site.worker()
    const { endpoints } = site.sender
    const { discardTaskId } = await endpoints.enable("acme", "lane", { held: "discard" })
    await expect
      .poll(() => site.sender.tasks.get(discardTaskId!), { timeout: 20_000 })
      .toMatchObject({ status: "finished" })
    expect(await endpoints.get("acme", "lane")).toMatchObject({ disabled: false })
    const sentAt = performance.now()
    await site.send("lane")
    expect((await site.receiver.arrived("/lane", 1))[0]!.at - sentAt).toBeLessThan(AT_ONCE_MS)
  })

  test("an endpoint paused in one process stops at once in another, and goes on when it is resumed", async () => {
    const site = await Site.open(await place())
    await site.endpoint("lane", { concurrency: 1 })
    await site.worker()
    const release = site.receiver.hold("/lane")
    await site.sender.sendBatch("acme", TWENTY)
    await site.receiver.arrived("/lane", 1)
    const client = await site.client()
    const inHand = async () => (await client.query("SELECT cardinality(sending) AS count FROM lanes")).rows
    await expect.poll(inHand).toEqual([{ count: 2 }])
    await site.sender.endpoints.pause("acme", "lane")
    // Prefetched deliveries are given back; the request in flight is not.
    await expect.poll(inHand, { timeout: AT_ONCE_MS }).toEqual([{ count: 1 }])
    release(200)
    await expect.poll(() => site.sender.stats()).toMatchObject({ delivered: 1, pending: 19 })
    expect(site.receiver.requests).toHaveLength(1)
    const resumedAt = performance.now()
    await site.sender.endpoints.resume("acme", "lane")
    const requests = await site.receiver.arrived("/lane", 20)
    expect(requests[1]!.at - resumedAt).toBeLessThan(AT_ONCE_MS)
  })

  test("a URL changed in one process is used by another at once, also for what it had fetched before", async () => {
    const site = await Site.open(await place())
    await site.endpoint("lane", { concurrency: 1 })
    const { told } = await site.worker({ tells: true })
    const release = site.receiver.hold("/lane")
    await site.sender.sendBatch("acme", TWENTY)
    await site.receiver.arrived("/lane", 1)
    const timesTaken = () => told.filter((line) => line.word === "took").length
    await expect.poll(timesTaken).toBe(2)
    await site.sender.endpoints.update("acme", "lane", { url: site.receiver.url("/moved") })
    // The second is given back and taken again.
    await expect.poll(timesTaken, { timeout: AT_ONCE_MS }).toBeGreaterThan(2)
    release(200)
    await site.receiver.arrived("/moved", 19)
    expect(site.receiver.to("/lane")).toHaveLength(1)
  })
})
