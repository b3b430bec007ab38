/** Seed 004, phase 6: HTTP delivery with signature verification, by the `standardwebhooks` package as a receiver would. */
import { Webhook } from "standardwebhooks"
import { expect, test } from "vitest"
import { TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import type { Received } from "../support/receiver.ts"

/** The package compares with the machine's own clock, so the test's clock begins there; it allows five minutes. */
async function start(): Promise<{ harness: Harness; endpointId: string; secret: () => Promise<string> }> {
  const harness = await Harness.start({ clock: new TestClock(Date.now()) })
  const endpointId = await harness.endpoint({ retry: "jobs" })
  const secret = async () => (await harness.posthorn.endpoints.secret("acme", endpointId)).key
  return { harness, endpointId, secret }
}

function verify(secret: string, { body, headers }: Received): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>)
}

/** Sends one and gives back what arrived. */
async function sendOne(harness: Harness): Promise<Received> {
  const count = harness.receiver.to("/").length + 1
  await harness.send({ total: 12, name: "Zoë 💌" })
  await harness.published("delivery.delivered", count)
  return harness.receiver.to("/").at(-1)!
}

test("the receiver verifies the signature and gets the payload", async () => {
  const { harness, secret } = await start()
  const request = await sendOne(harness)
  expect(verify(await secret(), request)).toEqual({ total: 12, name: "Zoë 💌" })
  for (const name of ["id", "timestamp", "signature"]) {
    expect(request.headers[`svix-${name}`]).toBe(request.headers[`webhook-${name}`])
  }
})

test("a changed body, another id, another time or another secret do not verify", async () => {
  const { harness, secret } = await start()
  const request = await sendOne(harness)
  const key = await secret()
  const { headers } = request
  const later = String(Number(headers["webhook-timestamp"]) + 1)
  const forged: Received[] = [
    { ...request, body: Buffer.from('{"total":13,"name":"Zoë 💌"}') },
    { ...request, headers: { ...headers, "webhook-id": "msg_other" } },
    { ...request, headers: { ...headers, "webhook-timestamp": later } },
  ]
  for (const one of forged) expect(() => verify(key, one)).toThrow("No matching signature")
  const other = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
  expect(() => verify(other, request)).toThrow("No matching signature")
})

test("each attempt is signed anew, with the time at which it is made", async () => {
  const { harness, secret } = await start()
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  await harness.attemptAfter(1000)
  const [first, second] = harness.receiver.to("/")
  const timestamps = [first!, second!].map(({ headers }) => Number(headers["webhook-timestamp"]))
  expect(timestamps[1]! - timestamps[0]!).toBe(1)
  expect(first!.headers["webhook-signature"]).not.toBe(second!.headers["webhook-signature"])
  for (const request of [first!, second!]) verify(await secret(), request)
})

test("during a rotation the old and the new secret both verify; after the grace period only the new one", async () => {
  const { harness, endpointId, secret } = await start()
  const old = await secret()
  await harness.posthorn.endpoints.rotateSecret("acme", endpointId, { gracePeriodSeconds: 60 })
  const rotated = await secret()
  expect(rotated).not.toBe(old)

  for (const ms of [0, 59_999]) {
    harness.clock.advance(ms)
    const request = await sendOne(harness)
    verify(old, request)
    verify(rotated, request)
  }
  harness.clock.advance(1)
  const request = await sendOne(harness)
  verify(rotated, request)
  expect(() => verify(old, request)).toThrow("No matching signature")
})

test("a retry after a rotation without grace is signed with the new secret alone", async () => {
  const { harness, endpointId, secret } = await start()
  const old = await secret()
  harness.receiver.queue("/", 500)
  await harness.send()
  await harness.published("delivery.attempt", 1)
  const given = `whsec_${Buffer.alloc(24, 9).toString("base64")}`
  await harness.posthorn.endpoints.rotateSecret("acme", endpointId, { secret: given, gracePeriodSeconds: 0 })
  await harness.attemptAfter(1000)
  const [before, after] = harness.receiver.to("/")
  verify(old, before!)
  verify(given, after!)
  expect(() => verify(old, after!)).toThrow("No matching signature")
})

test("each subscriber has a secret of its own", async () => {
  const { harness, secret } = await start()
  await harness.endpoint({ retry: "jobs" }, "/other")
  await harness.send()
  await harness.published("delivery.delivered", 2)
  const key = await secret()
  verify(key, harness.receiver.to("/")[0]!)
  expect(() => verify(key, harness.receiver.to("/other")[0]!)).toThrow("No matching signature")
})
