import { expect, test } from "vitest"
import { settledEvent } from "../../test/support/events.ts"
import { LogLines } from "../../test/support/log-lines.ts"
import { EventBus } from "./event-bus.ts"
import { EventLog } from "./event-log.ts"
import { type DeliveryEvent, EventStream, type InternalEvent } from "./event-stream.ts"
import { createLogger } from "./log.ts"
import type { WebhookEvent } from "./public-events.ts"

const silent = createLogger("silent")

function heardBy(bus: EventBus): WebhookEvent[] {
  const heard: WebhookEvent[] = []
  bus.on("gateway:webhooks", (event) => heard.push(event))
  return heard
}

test("every subscriber gets every event, in the order of emission", () => {
  const got: string[] = []
  const subscriber = (name: string) => ({
    handle: (event: InternalEvent) => void got.push(`${name} ${event.type}`),
  })
  const stream = new EventStream(silent, [subscriber("a"), subscriber("b")])
  stream.emit(settledEvent())
  stream.emit({ type: "worker.lease_lost", lanes: 2 })
  expect(got).toEqual([
    "a delivery.settled",
    "b delivery.settled",
    "a worker.lease_lost",
    "b worker.lease_lost",
  ])
})

test("a subscriber that throws is logged, and stops neither the caller nor the others", () => {
  const log = new LogLines()
  const bus = new EventBus(silent)
  const heard = heardBy(bus)
  const broken = {
    handle: () => {
      throw new Error("a mistake")
    },
  }
  new EventStream(log.logger, [broken, bus]).emit(settledEvent())
  expect(log.about("subscriber threw")).toMatchObject([
    { level: 50, event: "delivery.settled", err: { message: "a mistake" } },
  ])
  expect(heard).toHaveLength(2)
})

test.each<[string, DeliveryEvent, object[]]>([
  [
    "the attempt, then the success",
    settledEvent(),
    [
      { type: "delivery.attempt", success: true, at: 1000 },
      { type: "delivery.delivered", at: 1000 },
    ],
  ],
  [
    "only the attempt of a delivery that is retried",
    settledEvent({ status: "failed", nextRetryAt: 5000 }, { status: "failed" }),
    [{ type: "delivery.attempt", success: false, next_retry_at: 5000 }],
  ],
  [
    "only the end of a delivery that an operator cancelled",
    settledEvent({ status: "dead", deadReason: "cancelled" }, null),
    [{ type: "delivery.dead", reason: "cancelled" }],
  ],
  [
    "only the attempt of a delivery that was answered late, with no retry",
    settledEvent({ status: "failed", nextRetryAt: 5000 }, { status: "failed" }, "delivery.answered_late"),
    [{ type: "delivery.attempt", next_retry_at: null }],
  ],
])("the public bus publishes %s", (_what, event, published) => {
  const bus = new EventBus(silent)
  const heard = heardBy(bus)
  bus.handle(event)
  expect(heard).toMatchObject(published)
})

test("nothing is made of a settled delivery for a bus without listeners and a log that is off", () => {
  const event = settledEvent()
  // Every line and every public event names the delivery.
  Object.defineProperty(event, "delivery", {
    get: () => {
      throw new Error("read")
    },
  })
  const bus = new EventBus(silent)
  const stop = bus.on("delivery.dead", () => {})
  expect(() => bus.handle(event)).toThrow("read")
  expect(() => new EventLog(new LogLines().logger).handle(event)).toThrow("read")
  stop()
  bus.handle(event)
  new EventLog(createLogger("warn")).handle(event)
})
