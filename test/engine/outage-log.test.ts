/** The log of an outage: the operator is warned once in the first minute, and not for each attempt. */
import { expect, test } from "vitest"
import { TestClock } from "../support/clock.ts"
import { Harness } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"
import { VirtualReceiver } from "../support/virtual-receiver.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WARN = 40

async function start() {
  const log = new LogLines()
  const clock = new TestClock()
  const receiver = new VirtualReceiver(clock)
  const harness = await Harness.start({ clock, transport: receiver, random: () => 0.5, logger: log.logger })
  const pass = async (steps: number, stepMs: number) => {
    for (let step = 0; step < steps; step++) {
      clock.advance(stepMs)
      await harness.calm()
    }
  }
  const warnings = () => log.all.filter(({ level }) => level >= WARN).map(({ msg }) => msg)
  return { harness, receiver, log, pass, warnings }
}

test("an hour of outage behind a circuit breaker has one warning of each kind, and one when it ends", async () => {
  const { harness, receiver, log, pass, warnings } = await start()
  const id = await harness.endpoint({ retry: { delays: [60], maxAttempts: 1000 } })
  receiver.always("/", 500)
  for (let n = 0; n < 50; n++) await harness.send({ n })
  await pass(1, MINUTE)
  const first = [
    "An endpoint is failing",
    "A circuit breaker opened; nothing is sent to the endpoint until it is probed",
  ]
  expect(warnings().sort()).toEqual(first.sort())
  await pass(60, MINUTE)
  const reopened = log.about("A circuit breaker stays open")
  expect(reopened.length).toBeGreaterThan(5)
  expect(new Set(reopened.map(({ level, endpoint_id }) => [level, endpoint_id].join()))).toEqual(
    new Set([`30,${id}`]),
  )
  expect(warnings()).toHaveLength(2)

  receiver.always("/", 200)
  await pass(60, MINUTE)
  expect(warnings().slice(2)).toEqual(["An endpoint works again"])
  expect(log.about("An endpoint works again")).toMatchObject([
    { endpoint_id: id, failures: expect.any(Number), error: "HTTP 500", since: expect.any(String) },
  ])
})

test("days of failures without a breaker have one warning, its two reminders, and the disabling", async () => {
  const { harness, receiver, log, pass, warnings } = await start()
  await harness.endpoint({ retry: { delays: [4 * 3600], maxAge: 30 * 86_400, breaker: false } })
  receiver.always("/", 404)
  for (let n = 0; n < 5; n++) await harness.send({ n })
  await harness.published("delivery.attempt", 5)
  await pass(1, MINUTE)
  expect(warnings()).toEqual(["An endpoint is failing"])
  await pass(29, 4 * HOUR)
  expect(harness.events.length).toBeGreaterThan(140)
  expect(warnings()).toEqual(Array(3).fill("An endpoint is failing"))
  await pass(2, 4 * HOUR)
  expect(warnings().slice(3)).toEqual(["An endpoint failed for too long and is disabled"])
  expect(log.about("failed for too long")).toMatchObject([{ level: 50, since: expect.any(String) }])
})

test("a 410 says so in the log; a change by hand is no news to the operator", async () => {
  const { harness, receiver, warnings } = await start()
  const gone = await harness.endpoint()
  const other = await harness.endpoint({ eventTypes: ["other"] }, "/other")
  receiver.always("/", 410)
  await harness.send()
  await harness.published("delivery.dead", 1)
  await harness.posthorn.endpoints.update("acme", other, { disabled: true })
  await harness.calm()
  expect(await harness.posthorn.endpoints.get("acme", gone)).toMatchObject({ disabled: true })
  expect(warnings()).toEqual([
    "Webhook delivery failed permanently",
    "An endpoint answered 410 and is disabled",
  ])
})
