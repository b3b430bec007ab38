/** The worker that holds the lanes is killed in each state of the breaker: its successor goes on in that state. */
import { expect, test } from "vitest"
import type { Received } from "../support/receiver.ts"
import { ON_SHARED_SERVERS, Site } from "./site.ts"

const LEASE_MS = 2000
const FAILURES = 5
const RAMP = 50
const RETRY = {
  delays: [0.5],
  maxAttempts: 100,
  breaker: { failures: FAILURES, open: 2, maxOpen: 2, ramp: RAMP },
}
/** 2 s, less the jitter of 20 % and a millisecond for rounding. */
const SHORTEST_OPEN_MS = 1599
const FEW = 10
/** Four seconds of the ramp. */
const MANY = 4 * RAMP

/** The first requests fail. The next one gets no response until the function is called. */
async function failThenHold(site: Site, uid: string, failures: number, messages: number) {
  await site.endpoint(uid, { retry: RETRY })
  site.receiver.queue(`/${uid}`, ...new Array(failures).fill(500))
  const answer = site.receiver.hold(`/${uid}`)
  const batch = Array.from({ length: messages }, (_, n) => ({ eventType: uid, payload: { n } }))
  const sent = (await site.sender.sendBatch("acme", batch)).map(({ id }) => id)
  const requests = await site.receiver.arrived(`/${uid}`, failures + 1)
  return { answer, sent, heldId: requests.at(-1)!.id }
}

const openMsBetween = (before: Received | undefined, after: Received | undefined) => after!.at - before!.at

async function killInEachState(site: Site): Promise<void> {
  const { receiver } = site
  const doomed = await site.worker({ leaseMs: LEASE_MS })
  const [closed, open, probing, ramping] = await Promise.all([
    failThenHold(site, "closed", FAILURES - 1, FEW),
    failThenHold(site, "open", FAILURES - 1, FEW),
    failThenHold(site, "probing", FAILURES, FEW),
    failThenHold(site, "ramping", FAILURES, MANY),
  ])
  for (const path of ["/probing", "/ramping"]) {
    const requests = receiver.to(path)
    expect(openMsBetween(requests[FAILURES - 1], requests[FAILURES])).toBeGreaterThan(SHORTEST_OPEN_MS)
  }
  // The first worker has requests of every lane in flight: the second has nothing to do before the kill.
  await site.worker({ leaseMs: LEASE_MS })
  await site.endpoint("beside")

  ramping.answer(200)
  await receiver.arrived("/ramping", FAILURES + 1 + RAMP / 2)
  const openedAt = performance.now()
  open.answer(500)
  receiver.always("/open", 200)
  await expect
    .poll(async () => (await site.sender.endpoints.get("acme", "open")).breaker.state, { interval: 10 })
    .toBe("open")
  await doomed.kill()
  receiver.queue("/closed", 500)
  receiver.always("/closed", 200)
  const answerProbe = receiver.hold("/probing")

  // Open: no request before the interval is over.
  const afterOpen = await receiver.arrived("/open", FAILURES + 1)
  expect(afterOpen[FAILURES]!.at - openedAt).toBeGreaterThan(SHORTEST_OPEN_MS)

  // Half-open: one probe of the successor, also when more messages come.
  await receiver.arrived("/probing", FAILURES + 2)
  probing.sent.push(await site.send("probing"))
  const besideId = await site.send("beside")
  await receiver.arrived("/beside", 1)
  expect(receiver.to("/probing")).toHaveLength(FAILURES + 2)
  answerProbe(200)

  // Closed: the failures before the kill and the first one after it are five in a row.
  const afterClosed = await receiver.arrived("/closed", FAILURES + 2)
  expect(openMsBetween(afterClosed[FAILURES], afterClosed[FAILURES + 1])).toBeGreaterThan(SHORTEST_OPEN_MS)

  const lanes = { closed, open, probing, ramping }
  const accepted = Object.values(lanes).flatMap(({ sent }) => sent)
  await expect
    .poll(() => site.sender.stats(), { timeout: 20_000 })
    .toEqual({ pending: 0, failed: 0, delivered: accepted.length + 1, dead: 0, calledOff: 0 })
  const received = Map.groupBy(receiver.requests, ({ id }) => id)
  expect([...received.keys()].sort()).toEqual([...accepted, besideId].sort())
  for (const { heldId } of [closed, probing]) expect(received.get(heldId)!.length).toBeGreaterThanOrEqual(2)

  // Ramping: on a busy machine the requests of two seconds may arrive in one.
  const rampedAt = receiver.to("/ramping").map(({ at }) => at)
  const spansMs = rampedAt.slice(2 * RAMP).map((at, i) => at - rampedAt[i]!)
  expect(Math.min(...spansMs)).toBeGreaterThan(1000)
}

test("the successor of a killed worker keeps the breaker's failures, interval, single probe and ramp", async () => {
  // At the same time: most of it is waiting.
  await Promise.all(
    ON_SHARED_SERVERS.map(async ([, place]) => killInEachState(await Site.open(await place()))),
  )
}, 60_000)

async function loseAndRegain(site: Site): Promise<void> {
  const { receiver } = site
  const frozen = await site.worker({ leaseMs: LEASE_MS })
  const { answer, sent } = await failThenHold(site, "frozen", FAILURES, FEW)
  const successor = await site.worker({ leaseMs: LEASE_MS })
  frozen.freeze()
  receiver.hold("/frozen")
  await receiver.arrived("/frozen", FAILURES + 2)
  frozen.thaw()
  const answerLast = receiver.hold("/frozen")
  await successor.kill()
  // The first worker has the lane again, while the request of its earlier claim is still in flight.
  await receiver.arrived("/frozen", FAILURES + 3)
  answer(500)
  answerLast(200)
  await expect.poll(() => site.sender.stats(), { timeout: 20_000 }).toMatchObject({ delivered: sent.length })
}

test("a worker that loses its lane during a probe, and gets it back, probes again", async () => {
  await Promise.all(ON_SHARED_SERVERS.map(async ([, place]) => loseAndRegain(await Site.open(await place()))))
}, 60_000)
