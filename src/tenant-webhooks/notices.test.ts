import { expect, test } from "vitest"
import { settledEvent } from "../../test/support/events.ts"
import type { DisableReason } from "../core/gate.ts"
import type { InternalEvent } from "../observe/event-stream.ts"
import type { Store } from "../store/store.ts"
import { noticeOf } from "./notices.ts"

const store = {
  getEndpoint: async () => ({ id: "ep_1", appId: "app_1", orgId: "org_1", uid: "hook" }),
  getApplication: async () => ({ uid: "acme" }),
} as unknown as Store
const failed = (attemptCount: number, nextRetryAt: number | null = 5000) =>
  settledEvent({ status: "failed", attemptCount, nextRetryAt }, { status: "failed" })
const dead = (deadReason: "exhausted" | "cancelled") => settledEvent({ status: "dead", deadReason }, null)
const task = (type: "endpoint.replay" | "endpoint.delete"): InternalEvent => ({
  type: "task.finished",
  task: { id: "qtask_1", orgId: "org_1", type },
})

const endpoint = { id: "ep_1", uid: "hook", appId: "app_1", orgId: "org_1" }
const disabled = (reason: DisableReason, since: number | null): InternalEvent => ({
  type: "endpoint.disabled",
  endpoint,
  reason,
  since,
  at: 1000,
})
const why = { endpoint, failures: 5, error: "HTTP 500", at: 1000 }
const failing = (type: "endpoint.failing" | "endpoint.recovered"): InternalEvent => ({
  ...why,
  type,
  since: 500,
  disablesAt: null,
})
const opened: InternalEvent = {
  ...why,
  type: "endpoint.breaker.opened",
  until: 2000,
  since: 1000,
  isReport: false,
}

test.each<[string, InternalEvent, string | null]>([
  ["a first success", settledEvent(), null],
  ["the success of a fourth attempt", settledEvent({ attemptCount: 4 }), null],
  ["the success of a fifth attempt", settledEvent({ attemptCount: 5 }), "message.attempt.recovered"],
  ["a third failure", failed(3), null],
  ["a fourth failure", failed(4), "message.attempt.failing"],
  ["a fifth failure", failed(5), null],
  ["a late fourth failure", { ...failed(4), type: "delivery.answered_late" }, null],
  ["a delivery that was given up", dead("exhausted"), "message.attempt.exhausted"],
  ["a delivery that an operator cancelled", dead("cancelled"), null],
  ["a task that Svix knows", task("endpoint.replay"), "background_task.finished"],
  ["a task of Posthorn's own", task("endpoint.delete"), null],
  ["an endpoint that was disabled by hand", disabled("manual", null), "endpoint.disabled"],
  ["an endpoint that failed for days", disabled("failing", 500), "endpoint.disabled"],
  ["an endpoint that is failing, which Svix has no name for", failing("endpoint.failing"), null],
  ["an endpoint that works again", failing("endpoint.recovered"), null],
  ["a circuit breaker that opened", opened, null],
  ["a lost lease", { type: "worker.lease_lost", lanes: 1 }, null],
])("of %s the tenant is told: %s", async (_what, event, type) => {
  expect((await noticeOf(event, store))?.type ?? null).toBe(type)
})

test("two processes that see the same failure send a webhook with the same key", async () => {
  const [one, other] = [await noticeOf(dead("exhausted"), store), await noticeOf(dead("exhausted"), store)]
  expect(one!.idempotencyKey).toBe("message.attempt.exhausted:dlv_1:1:1000")
  expect(other!.idempotencyKey).toBe(one!.idempotencyKey)
})

test("a tenant is not told of an endpoint that is gone", async () => {
  const empty = { getEndpoint: async () => null } as unknown as Store
  expect(await noticeOf(dead("exhausted"), empty)).toBeNull()
})

test.each<[DisableReason, number | null, object]>([
  ["failing", 500, { trigger: "automatic", failSince: "1970-01-01T00:00:00.500Z" }],
  ["gone", 900, { trigger: "automatic", failSince: "1970-01-01T00:00:00.900Z" }],
  ["manual", null, { trigger: "manual" }],
])("an endpoint that was disabled (%s) is told in Svix's words", async (reason, since, more) => {
  const notice = await noticeOf(disabled(reason, since), store)
  const names = { appId: "app_1", appUid: "acme", endpointId: "ep_1", endpointUid: "hook" }
  expect(await notice!.data()).toEqual({ ...names, ...more })
  expect(notice!.idempotencyKey).toBe(reason === "manual" ? null : "endpoint.disabled:ep_1:1000")
})
