import { expect, test } from "vitest"
import { settledEvent } from "../../test/support/events.ts"
import type { InternalEvent } from "../observe/event-stream.ts"
import type { Store } from "../store/store.ts"
import { noticeOf } from "./notices.ts"

const store = { getEndpoint: async () => ({ orgId: "org_1", uid: "hook" }) } as unknown as Store
const failed = (attemptCount: number, nextRetryAt: number | null = 5000) =>
  settledEvent({ status: "failed", attemptCount, nextRetryAt }, { status: "failed" })
const dead = (deadReason: "exhausted" | "cancelled") => settledEvent({ status: "dead", deadReason }, null)
const task = (type: "endpoint.replay" | "endpoint.delete"): InternalEvent => ({
  type: "task.finished",
  task: { id: "qtask_1", orgId: "org_1", type },
})

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
