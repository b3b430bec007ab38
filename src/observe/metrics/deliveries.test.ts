/** Which events become which numbers. */
import { Registry } from "@prometheus-io/client"
import { expect, test } from "vitest"
import { settledEvent } from "../../../test/support/events.ts"
import { seriesOf, total } from "../../../test/support/series.ts"
import { NOTIFICATIONS_ORG } from "../../core/org.ts"
import { HEALTHY } from "../../core/protection.ts"
import { breakerEvent } from "../endpoint-events.ts"
import type { InternalEvent } from "../event-stream.ts"
import { DeliveryMetrics } from "./deliveries.ts"

async function after(...events: InternalEvent[]) {
  const registry = new Registry(Registry.OPENMETRICS_CONTENT_TYPE)
  const metrics = new DeliveryMetrics(registry)
  for (const event of events) metrics.handle(event)
  registry.setContentType(Registry.PROMETHEUS_CONTENT_TYPE)
  return seriesOf(await registry.metrics())
}

test("an answer that came late is an attempt, and ends no delivery", async () => {
  const series = await after(settledEvent({}, {}, "delivery.answered_late"))
  expect(total(series, "posthorn_attempts_total", { result: "succeeded" })).toBe(1)
  expect(total(series, "posthorn_deliveries_finished_total")).toBe(0)
})

test("deliveries of Posthorn's own notifications are not counted", async () => {
  const series = await after({ ...settledEvent(), orgId: NOTIFICATIONS_ORG })
  expect(total(series, "posthorn_attempts_total")).toBe(0)
  expect(total(series, "posthorn_deliveries_finished_total")).toBe(0)
})

test("breakers of Posthorn's own channels are not counted", async () => {
  const endpoint = { id: "ep_1", uid: "ops", appId: "app_1", orgId: NOTIFICATIONS_ORG }
  const series = await after(breakerEvent("opened", endpoint, HEALTHY, 1, null))
  expect(total(series, "posthorn_breaker_transitions_total")).toBe(0)
})

test("an attempt of unknown outcome is not counted", async () => {
  const series = await after(settledEvent({ status: "failed", nextRetryAt: 2000 }, { status: "unknown" }))
  expect(total(series, "posthorn_attempts_total")).toBe(0)
  expect(total(series, "posthorn_retry_delay_seconds_count")).toBe(0)
})

test("a delivery that ends without a request is finished with its reason", async () => {
  const series = await after(settledEvent({ status: "dead", deadReason: "cancelled" }, null))
  expect(total(series, "posthorn_deliveries_finished_total", { outcome: "cancelled" })).toBe(1)
  expect(total(series, "posthorn_attempts_total")).toBe(0)
})

test("a delay is never negative, also when the wall clock is ahead", async () => {
  const event = settledEvent({}, { startedAt: 900 })
  const series = await after({ ...event, start: { ...event.start!, dueAt: 5000 } })
  expect(total(series, "posthorn_first_attempt_delay_seconds_sum")).toBe(0)
})

test("a breaker that only reports makes no transition", async () => {
  const endpoint = { id: "ep_1", uid: null, appId: "app_1", orgId: "org_1" }
  const series = await after(
    breakerEvent("opened", endpoint, HEALTHY, 1, null, true),
    breakerEvent("closed", endpoint, HEALTHY, 1),
  )
  expect(total(series, "posthorn_breaker_transitions_total", { to: "opened" })).toBe(0)
  expect(total(series, "posthorn_breaker_transitions_total", { to: "closed" })).toBe(1)
})

test("an outage of our own network is 1 while it lasts, and a lost lease is counted", async () => {
  const outage = { since: 1, endpoints: 10, hosts: 3, attempts: 0, isAnswered: false, at: 2 }
  const began = { ...outage, type: "engine.outage.began" } as const
  const ended = { ...outage, type: "engine.outage.ended" } as const
  expect(total(await after(began), "posthorn_own_outage")).toBe(1)
  expect(total(await after(began, ended), "posthorn_own_outage")).toBe(0)
  const series = await after({ type: "worker.lease_lost", lanes: 20 })
  expect(total(series, "posthorn_leases_lost_total")).toBe(1)
})
