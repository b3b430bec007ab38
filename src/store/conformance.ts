/** What every store must do, run over each implementation with a real database. */
import { describe, expect, test } from "vitest"
import { revive } from "../core/operate.ts"
import { PRESETS } from "../core/presets.ts"
import { type Change, settle } from "../core/settle.ts"
import type {
  Application,
  Claimed,
  ClaimedDelivery,
  Endpoint,
  LaneWork,
  NewAttempt,
  NewMessage,
  Settlement,
  Store,
  Task,
} from "./store.ts"

export interface StoreUnderTest {
  readonly store: Store
  /** Ends the store as a crash would and opens it again. */
  reopen(): Promise<Store>
  /** A second program beside it on the same data. */
  beside(): Promise<Store>
  /** How much longer than its time a finished delivery may stay; 0 unless told. */
  readonly retentionGrainMs?: number
}

const NOW = 1_900_000_000_000
let counter = 0
const newId = (prefix: string) => `${prefix}_${String(++counter).padStart(27, "0")}`

export const sample = {
  application(more: Partial<Application> = {}): Application {
    return {
      id: newId("app"),
      uid: null,
      name: "Acme",
      metadata: {},
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
  endpoint(appId: string, more: Partial<Endpoint> = {}): Endpoint {
    return {
      id: newId("ep"),
      appId,
      uid: null,
      url: "http://127.0.0.1:9/hook",
      description: "",
      eventTypes: null,
      channels: null,
      headers: { "x-a": "b" },
      metadata: { k: "v" },
      retryName: null,
      retryPolicy: null,
      ordered: false,
      concurrency: null,
      rateLimit: null,
      disabled: false,
      paused: false,
      holdUntil: null,
      secrets: Buffer.from("sealed"),
      version: 1,
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
  message(app: string, more: Partial<NewMessage> = {}): NewMessage {
    return {
      id: newId("msg"),
      app,
      eventType: "invoice.paid",
      payload: Buffer.from('{"n":1}'),
      contentType: "application/json",
      eventId: null,
      channels: [],
      sessionId: null,
      metadata: {},
      priority: "normal",
      maxAttempts: null,
      receivedAt: NOW,
      deliverAt: null,
      idempotency: null,
      purgeUnmatchedAt: NOW + 1000,
      ...more,
    }
  },
  attempt(more: Partial<NewAttempt> = {}): NewAttempt {
    return {
      id: newId("atmpt"),
      status: "failed",
      attemptNumber: 1,
      url: "http://127.0.0.1:9/hook",
      responseStatus: 500,
      responseBody: Buffer.from([0, 255, 1]),
      responseTruncated: false,
      error: "HTTP 500",
      startedAt: NOW,
      durationMs: 3,
      ...more,
    }
  },
  task(more: Partial<Task>): Task {
    return {
      seq: 0,
      id: newId("task"),
      action: "retry",
      filter: {},
      status: "running",
      total: 0,
      done: 0,
      changed: 0,
      cursor: 0,
      upTo: 0,
      createdAt: NOW,
      updatedAt: NOW,
      ...more,
    }
  },
}

export function claimed(endpointId: string, token: number, { seq, id, messageId }: ClaimedDelivery): Claimed {
  return { seq, deliveryId: id, messageId, endpointId, token }
}

/** What an attempt with this status makes of a claimed delivery. */
export function settlement(
  endpointId: string,
  token: number,
  delivery: ClaimedDelivery,
  status: number,
  now = NOW,
): Settlement {
  const outcome = { kind: "response", status, excerpt: "", retryAfter: null } as const
  const change = settle(delivery, outcome, PRESETS.gateway, now, () => 0.5)
  const attempt = sample.attempt({
    status: status < 300 ? "succeeded" : "failed",
    responseStatus: status,
    startedAt: now,
  })
  return {
    ...claimed(endpointId, token, delivery),
    expectedAttemptCount: delivery.attemptCount,
    change,
    attempt,
  }
}

export function storeConformance(name: string, open: () => Promise<StoreUnderTest>): void {
  const setUp = async (more: Partial<Endpoint> = {}) => {
    const under = await open()
    const { store } = under
    const application = sample.application()
    await store.createApplication(application)
    const endpoint = sample.endpoint(application.id, more)
    await store.createEndpoint(endpoint)
    const send = async (message: Partial<NewMessage> = {}) =>
      (await store.accept([sample.message(application.id, message)]))[0]!
    const inHand = new Map<number, number[]>()
    const fetch = async (token: number, limit = 10, now = NOW, retryShare = 0): Promise<LaneWork> => {
      const held = inHand.get(token) ?? []
      const lane = { endpointId: endpoint.id, token, limit, starting: 99, retryShare, knownVersion: null }
      const [work] = await store.fetch([{ ...lane, inHand: held }], now)
      inHand.set(token, [...held, ...work!.deliveries.map(({ seq }) => seq)])
      return work!
    }
    return { ...under, application, endpoint, send, fetch }
  }

  describe(`${name}: accepting`, () => {
    test("gives every endpoint that wants the message a delivery that is due now", async () => {
      const { store, application, endpoint, send } = await setUp({ eventTypes: ["invoice.paid"] })
      await store.createEndpoint(sample.endpoint(application.id, { eventTypes: ["other"] }))
      await store.createEndpoint(sample.endpoint(application.id, { disabled: true }))
      const accepted = await send()
      expect(accepted).toMatchObject({
        matched: 1,
        duplicate: false,
        lanes: [{ endpointId: endpoint.id, dueAt: NOW }],
      })
      const rows = await store.listDeliveries({ messageId: accepted.messageId }, { limit: 9, before: null })
      expect(rows).toMatchObject([
        { endpointId: endpoint.id, status: "pending", attemptCount: 0, nextRetryAt: NOW, receivedAt: NOW },
      ])
      expect(await store.getMessage(application.id, accepted.messageId)).toMatchObject({
        matched: 1,
        eventType: "invoice.paid",
      })
    })

    test("never misses an endpoint that another program created before the call", async () => {
      const { application, beside, send } = await setUp()
      expect((await send()).matched).toBe(1)
      const other = await beside()
      for (let i = 2; i < 6; i++) {
        await other.createEndpoint(sample.endpoint(application.id))
        expect((await send()).matched).toBe(i)
      }
      await other.close()
    })

    test("answers a repeated idempotency key as before, and another body with a conflict", async () => {
      const { store, application, send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 1), digest: Buffer.alloc(16, 2) }
      const first = await send({ idempotency })
      expect(await send({ idempotency })).toMatchObject({
        messageId: first.messageId,
        matched: 1,
        duplicate: true,
        lanes: [],
      })
      await expect(
        send({ idempotency: { ...idempotency, digest: Buffer.alloc(16, 3) } }),
      ).rejects.toMatchObject({ code: "conflict" })
      expect(await store.listMessages({ appId: application.id }, { limit: 9, before: null })).toHaveLength(1)
    })

    test("answers the same key sent many times at once with one message", async () => {
      const { send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 9), digest: Buffer.alloc(16, 2) }
      const results = await Promise.all(Array.from({ length: 50 }, () => send({ idempotency })))
      expect(new Set(results.map(({ messageId }) => messageId)).size).toBe(1)
      expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    })

    test("keeps a key for at least a day, through its generations, and then forgets it", async () => {
      const { store, send } = await setUp()
      const idempotency = { key: Buffer.alloc(16, 5), digest: Buffer.alloc(16, 2) }
      const first = await send({ idempotency })
      for (const hours of [6, 12, 18, 24]) {
        await store.purge(NOW + hours * 3_600_000, 100)
        expect(await send({ idempotency, receivedAt: NOW + hours * 3_600_000 })).toMatchObject({
          messageId: first.messageId,
        })
      }
      await store.purge(NOW + 49 * 3_600_000, 100)
      expect((await send({ idempotency, receivedAt: NOW + 49 * 3_600_000 })).duplicate).toBe(false)
    })

    test("writes a batch whole or not at all, and a bad one harms none that are sent at the same moment", async () => {
      const { store, application, send } = await setUp()
      await send({ eventId: "e1" })
      const good = [1, 2, 3].map(() => send())
      const bad = store.accept([
        sample.message(application.id),
        sample.message(application.id, { eventId: "e1" }),
      ])
      const more = [4, 5].map(() => send())
      await expect(bad).rejects.toMatchObject({ code: "conflict", field: "eventId" })
      await Promise.all([...good, ...more])
      expect(await store.listMessages({ appId: application.id }, { limit: 99, before: null })).toHaveLength(6)
      await expect(store.accept([sample.message("nobody")])).rejects.toMatchObject({ code: "not_found" })
    })

    test("numbers deliveries in call order", async () => {
      const { store, endpoint, send } = await setUp()
      const accepted = await Promise.all(Array.from({ length: 100 }, () => send()))
      const rows = await store.listDeliveries({ endpointId: endpoint.id }, { limit: 100, before: null })
      expect(rows.reverse().map(({ messageId }) => messageId)).toEqual(
        accepted.map(({ messageId }) => messageId),
      )
    })

    test("survives a crash right after it answered", async () => {
      const { application, send, reopen } = await setUp()
      const { messageId } = await send()
      const again = await reopen()
      expect(await again.getMessage(application.id, messageId)).toMatchObject({ id: messageId })
      expect(await again.scanLanes(null, 10)).toHaveLength(1)
    })
  })

  describe(`${name}: fetching`, () => {
    test("gives what is due with its payload and endpoint, once for each claim", async () => {
      const { endpoint, send, fetch } = await setUp()
      await send()
      await send({ deliverAt: NOW + 60_000 })
      const work = await fetch(1)
      expect(work.deliveries).toHaveLength(1)
      expect(Buffer.from(work.deliveries[0]!.payload).toString()).toBe('{"n":1}')
      expect(work.endpoint).toMatchObject({ id: endpoint.id, headers: { "x-a": "b" } })
      expect(work.nextDueAt).toBe(NOW + 60_000)
      expect((await fetch(1)).deliveries).toHaveLength(0)
      expect((await fetch(1, 10, NOW + 60_000)).deliveries).toHaveLength(1)
    })

    test("sends the endpoint along only when the caller has an older version", async () => {
      const { store, endpoint, send } = await setUp()
      await send()
      const ask = async (knownVersion: number | null) =>
        (
          await store.fetch(
            [
              {
                endpointId: endpoint.id,
                token: 1,
                limit: 1,
                starting: 99,
                retryShare: 0,
                knownVersion,
                inHand: [],
              },
            ],
            NOW,
          )
        )[0]!
      expect((await ask(1)).endpoint).toBeNull()
      await store.updateEndpoint(endpoint.id, { url: "http://127.0.0.1:9/new" }, NOW)
      expect((await ask(1)).endpoint).toMatchObject({ url: "http://127.0.0.1:9/new", version: 2 })
    })

    test("holds a paused, disabled or Retry-After endpoint, and says when it was deleted", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      await store.updateEndpoint(endpoint.id, { paused: true }, NOW)
      expect(await fetch(1)).toMatchObject({ held: { until: null }, deliveries: [] })
      await store.updateEndpoint(endpoint.id, { paused: false, holdUntil: NOW + 500 }, NOW)
      expect(await fetch(1)).toMatchObject({ held: { until: NOW + 500 }, deliveries: [] })
      expect((await fetch(1, 10, NOW + 500)).deliveries).toHaveLength(1)
      await store.updateEndpoint(endpoint.id, { disabled: true }, NOW)
      expect((await fetch(2, 10, NOW + 500)).held).toEqual({ until: null })
      await store.deleteEndpoint(
        endpoint.id,
        sample.task({ action: "cancel", filter: { endpointId: endpoint.id, live: true } }),
      )
      expect(await fetch(3, 10, NOW + 500)).toMatchObject({
        held: null,
        deleted: true,
        deliveries: [{ stalls: 1 }],
      })
    })

    test("goes by priority, then first attempts before retries, with the share that is kept for retries", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      const retried = await send({ metadata: { name: "retried" } })
      const [claimed] = (await fetch(1)).deliveries
      await store.settle([settlement(endpoint.id, 1, claimed!, 500)])
      const later = NOW + 40_000
      const low = await send({ priority: "low", receivedAt: later })
      const normal = await send({ receivedAt: later })
      const high = await send({ priority: "high", receivedAt: later })
      const order = async (token: number, retryShare: number) =>
        (await fetch(token, 9, later, retryShare)).deliveries.map(({ messageId }) => messageId)
      expect(await order(2, 0)).toEqual([high, normal, retried, low].map(({ messageId }) => messageId))
      expect((await order(3, 1))[0]).toBe(retried.messageId)
    })

    test("an ordered lane gives its head only, also while the head waits", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const [first, second] = [await send(), await send()]
      const work = await fetch(1)
      expect(work.deliveries.map(({ messageId }) => messageId)).toEqual([first.messageId])
      expect((await fetch(1)).deliveries).toEqual([])
      await store.settle([settlement(endpoint.id, 1, work.deliveries[0]!, 500)])
      expect(await fetch(1)).toMatchObject({ deliveries: [], nextDueAt: NOW + 30_000 })
      const [head] = (await fetch(1, 9, NOW + 30_000)).deliveries
      expect(head!.messageId).toBe(first.messageId)
      await store.settle([settlement(endpoint.id, 1, head!, 200, NOW + 30_000)])
      expect((await fetch(1, 9, NOW + 30_000)).deliveries[0]!.messageId).toBe(second.messageId)
    })

    test("a deferred message joins the ordered line when it is due and blocks nobody before", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const deferred = await send({ deliverAt: NOW + 5000 })
      const next = await send()
      const last = await send()
      const [head] = (await fetch(1)).deliveries
      expect(head!.messageId).toBe(next.messageId)
      await store.settle([settlement(endpoint.id, 1, head!, 200)])
      expect((await fetch(2, 9, NOW + 5000)).deliveries[0]!.messageId).toBe(deferred.messageId)
      expect((await fetch(2, 9, NOW + 5000)).deliveries).toEqual([])
      expect(last.matched).toBe(1)
    })

    test("of deferred messages that are due the one that was accepted first goes first, whichever was due first", async () => {
      const { store, endpoint, send, fetch } = await setUp({ ordered: true })
      const early = await send({ deliverAt: NOW + 2000 })
      const head = await send()
      await send({ deliverAt: NOW + 1000 })
      const [claimed] = (await fetch(1)).deliveries
      expect(claimed!.messageId).toBe(head.messageId)
      await store.settle([settlement(endpoint.id, 1, claimed!, 500)])
      expect((await fetch(1, 9, NOW + 5000)).deliveries.map(({ messageId }) => messageId)).toEqual([
        early.messageId,
      ])
    })

    test("a lane with live deliveries is found by the scan with its earliest due time, page by page", async () => {
      const { store, application, endpoint, send } = await setUp()
      const second = sample.endpoint(application.id)
      await store.createEndpoint(second)
      await send({ deliverAt: NOW + 9000 })
      await send({ deliverAt: NOW + 4000 })
      const [first] = await store.scanLanes(null, 1)
      expect(first).toEqual({ endpointId: endpoint.id, appId: application.id, dueAt: NOW + 4000 })
      expect(await store.scanLanes(first!.endpointId, 5)).toMatchObject([{ endpointId: second.id }])
    })
  })

  describe(`${name}: settling`, () => {
    test("applies the change with its attempt", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      expect(await store.settle([settlement(endpoint.id, 7, claimed!, 500)])).toEqual(["applied"])
      expect(await store.getDelivery(claimed!.id)).toMatchObject({
        status: "failed",
        attemptCount: 1,
        nextRetryAt: NOW + 30_000,
        lastAttemptedAt: NOW,
        errorDetail: "HTTP 500",
      })
      const [attempt] = await store.listAttempts({ deliveryId: claimed!.id }, { limit: 9, before: null })
      expect(attempt).toMatchObject({ status: "failed", responseStatus: 500, endpointId: endpoint.id })
      expect(Buffer.from(attempt!.responseBody!)).toEqual(Buffer.from([0, 255, 1]))
    })

    test("refuses a claim that was lost to another, and one that was written before", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      const [taken] = (await fetch(8)).deliveries
      expect(taken!.id).toBe(claimed!.id)
      expect(await store.settle([settlement(endpoint.id, 7, claimed!, 200)])).toEqual(["stale"])
      expect(await store.getDelivery(claimed!.id)).toMatchObject({ status: "pending" })
      const outcome = settlement(endpoint.id, 8, taken!, 200)
      expect(await store.settle([outcome])).toEqual(["applied"])
      expect(await store.settle([outcome])).toEqual(["stale"])
      expect(await store.getDelivery(claimed!.id)).toMatchObject({ status: "delivered", attemptCount: 1 })
    })

    test("leaves a row that an operator changed meanwhile as it is, and keeps the attempt", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      const row = (await store.getDelivery(claimed!.id))!
      const cancelled: Change = {
        ...settlement(endpoint.id, 7, claimed!, 200).change,
        status: "dead",
        deadReason: "cancelled",
        deliveredAt: null,
      }
      expect(
        await store.amend([
          { seq: row.seq, expectedStatus: "pending", expectedAttemptCount: 0, change: cancelled },
        ]),
      ).toEqual([true])
      expect(await store.settle([settlement(endpoint.id, 7, claimed!, 200)])).toEqual(["superseded"])
      expect(await store.getDelivery(claimed!.id)).toMatchObject({ status: "dead", deadReason: "cancelled" })
      expect(await store.listAttempts({ deliveryId: claimed!.id }, { limit: 9, before: null })).toHaveLength(
        1,
      )
    })

    test("what was given back is fetched again as if it had not been", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [first] = (await fetch(1)).deliveries
      await store.giveBack([{ ...claimed(endpoint.id, 1, first!), attempt: null }])
      const [again] = (await fetch(2)).deliveries
      expect(again).toEqual(first)
      expect(await store.listAttempts({}, { limit: 9, before: null })).toEqual([])
    })

    test("what a crashed claim left behind becomes an attempt of unknown outcome and counts as a stall", async () => {
      const { send, fetch, reopen, endpoint } = await setUp()
      await send()
      await fetch(1)
      const again = await reopen()
      const [work] = await again.fetch(
        [
          {
            endpointId: endpoint.id,
            token: 2,
            limit: 5,
            starting: 99,
            retryShare: 0,
            knownVersion: null,
            inHand: [],
          },
        ],
        NOW,
      )
      expect(work!.deliveries).toMatchObject([{ attemptCount: 0, stalls: 1 }])
      expect(await again.listAttempts({}, { limit: 9, before: null })).toMatchObject([
        { status: "unknown", startedAt: NOW },
      ])
    })

    test("410 disables the endpoint and Retry-After holds it, in the same transaction", async () => {
      const { store, application, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(1)).deliveries
      const plain = settlement(endpoint.id, 1, claimed!, 500)
      await store.settle([
        { ...plain, change: { ...plain.change, disableEndpoint: true, holdLaneUntil: NOW + 777 } },
      ])
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({
        disabled: true,
        holdUntil: NOW + 777,
      })
      expect((await send()).matched).toBe(0)
    })
  })

  describe(`${name}: operating`, () => {
    const killOff = async (
      { store, endpoint, send, fetch }: Awaited<ReturnType<typeof setUp>>,
      count: number,
    ) => {
      for (let i = 0; i < count; i++) await send({ maxAttempts: 1 })
      const { deliveries } = await fetch(1, count)
      await store.settle(deliveries.map((one) => settlement(endpoint.id, 1, one, 500)))
    }

    test("a task revives what fits its filter, step by step, and remembers how far it came", async () => {
      const under = await setUp()
      await killOff(under, 5)
      const filter = { status: "dead" as const, undiscarded: true }
      const task = await under.store.createTask(sample.task({ filter, total: 5 }))
      expect(task).toMatchObject({ total: 5, done: 0, status: "running" })
      const rows = await under.store.readTask(task.id, 3)
      const amendments = rows.map((row) => ({
        seq: row.seq,
        expectedStatus: row.status,
        expectedAttemptCount: row.attemptCount,
        change: revive(row, NOW + 1),
      }))
      expect(
        await under.store.stepTask({
          taskId: task.id,
          expectedCursor: 0,
          amendments,
          looked: 3,
          cursor: rows.at(-1)!.seq,
          now: NOW,
        }),
      ).toEqual([true, true, true])
      const again = await under.reopen()
      expect(await again.getTask(task.id)).toMatchObject({ done: 3, changed: 3, status: "running" })
      expect(await again.readTask(task.id, 9)).toHaveLength(2)
      const last = { taskId: task.id, amendments: [], looked: 0, cursor: null, now: NOW }
      // Read before the first step was made by somebody else: not made twice.
      expect(await again.stepTask({ ...last, expectedCursor: 0 })).toBeNull()
      await again.stepTask({ ...last, expectedCursor: rows.at(-1)!.seq })
      expect(await again.getTask(task.id)).toMatchObject({ status: "finished" })
      expect(await again.countByStatus({})).toMatchObject({ pending: 3, dead: 2 })
    })

    test("a cancelled task changes nothing more", async () => {
      const under = await setUp()
      await killOff(under, 2)
      const task = await under.store.createTask(sample.task({ filter: { status: "dead" } }))
      expect(await under.store.cancelTask(task.id, NOW)).toMatchObject({ status: "cancelled" })
      expect(
        await under.store.stepTask({
          taskId: task.id,
          expectedCursor: 0,
          amendments: [],
          looked: 0,
          cursor: null,
          now: NOW,
        }),
      ).toBeNull()
      expect(await under.store.readTask(task.id, 9)).toEqual([])
    })

    test("a discarded dead letter is no longer listed as one and keeps its record", async () => {
      const under = await setUp()
      await killOff(under, 2)
      const [row] = await under.store.listDeliveries(
        { status: "dead", undiscarded: true },
        { limit: 9, before: null },
      )
      const amendment = {
        seq: row!.seq,
        expectedStatus: "dead" as const,
        expectedAttemptCount: 1,
        change: { discardedAt: NOW },
      }
      expect(await under.store.amend([amendment])).toEqual([true])
      expect(await under.store.countDeliveries({ status: "dead", undiscarded: true })).toBe(1)
      expect(await under.store.getDelivery(row!.id)).toMatchObject({ status: "dead", discardedAt: NOW })
    })

    test("lists run from the newest to the oldest and go on from a cursor", async () => {
      const { store, endpoint, send } = await setUp()
      for (let i = 0; i < 5; i++) await send()
      const first = await store.listDeliveries({ endpointId: endpoint.id }, { limit: 3, before: null })
      const rest = await store.listDeliveries(
        { endpointId: endpoint.id },
        { limit: 3, before: first.at(-1)!.seq },
      )
      const numbers = [...first, ...rest].map(({ seq }) => seq)
      expect(numbers).toEqual([...numbers].sort((a, b) => b - a))
      expect(new Set(numbers).size).toBe(5)
    })

    test("retention removes finished deliveries in their time, then messages that nothing refers to", async () => {
      const under = await setUp()
      const { store, application, endpoint, send, fetch, retentionGrainMs = 0 } = under
      const other = sample.endpoint(application.id)
      await store.createEndpoint(other)
      const { messageId } = await send()
      const [claimed] = (await fetch(1)).deliveries
      await store.settle([settlement(endpoint.id, 1, claimed!, 200)])
      const purgeAt = NOW + 30 * 86_400_000
      expect(await store.purge(purgeAt - 1, 100)).toBe(0)
      expect(await store.purge(purgeAt + retentionGrainMs, 100)).toBe(1)
      expect(await store.getDelivery(claimed!.id)).toBeNull()
      expect(await store.listAttempts({ deliveryId: claimed!.id }, { limit: 9, before: null })).toEqual([])
      expect(await store.getMessage(application.id, messageId)).not.toBeNull()
      const [work] = await store.fetch(
        [
          {
            endpointId: other.id,
            token: 2,
            limit: 1,
            starting: 99,
            retryShare: 0,
            knownVersion: null,
            inHand: [],
          },
        ],
        NOW,
      )
      await store.settle([settlement(other.id, 2, work!.deliveries[0]!, 200)])
      expect(await store.purge(purgeAt + retentionGrainMs, 100)).toBe(1)
      expect(await store.getMessage(application.id, messageId)).toBeNull()
    })

    test("a message that nobody wanted goes by its own time", async () => {
      const { store, application, send } = await setUp({ eventTypes: ["other"] })
      const { messageId, matched } = await send()
      expect(matched).toBe(0)
      expect(await store.purge(NOW + 999, 10)).toBe(0)
      expect(await store.purge(NOW + 1000, 10)).toBe(1)
      expect(await store.getMessage(application.id, messageId)).toBeNull()
    })
  })

  describe(`${name}: applications, endpoints and policies`, () => {
    test("a uid is used once, and free again after deletion", async () => {
      const { store } = await setUp()
      const application = sample.application({ uid: "acme" })
      await store.createApplication(application)
      await expect(store.createApplication(sample.application({ uid: "acme" }))).rejects.toMatchObject({
        code: "conflict",
        field: "uid",
      })
      expect(await store.getApplication("acme")).toEqual(application)
      await store.deleteApplication(
        application.id,
        sample.task({ action: "cancel", filter: { appId: application.id, live: true } }),
      )
      expect(await store.getApplication("acme")).toBeNull()
      await store.createApplication(sample.application({ uid: "acme" }))
    })

    test("an endpoint reads back as it was written, and an update needs the version it was made from", async () => {
      const { store, application, endpoint } = await setUp({
        uid: "hook",
        eventTypes: ["a"],
        channels: ["c"],
        rateLimit: 5,
      })
      expect(await store.getEndpoint(application.id, "hook")).toEqual({
        ...endpoint,
        secrets: new Uint8Array(endpoint.secrets),
      })
      await store.updateEndpoint(endpoint.id, { description: "x" }, NOW + 1, 1)
      await expect(store.updateEndpoint(endpoint.id, { description: "y" }, NOW + 1, 1)).rejects.toMatchObject(
        { code: "conflict" },
      )
    })

    test("an endpoint made ordered lines up what already waits", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      const first = await send()
      await send()
      await store.updateEndpoint(endpoint.id, { ordered: true }, NOW)
      expect((await fetch(1)).deliveries.map(({ messageId }) => messageId)).toEqual([first.messageId])
      await store.updateEndpoint(endpoint.id, { ordered: false }, NOW)
      expect((await fetch(1)).deliveries).toHaveLength(1)
    })

    test("a named policy comes with its endpoint, follows its changes, and cannot be deleted while used", async () => {
      const { store, application } = await setUp()
      await store.putPolicy({ name: "mine", policy: '{"v":1}', updatedAt: NOW })
      const endpoint = sample.endpoint(application.id, { retryName: "mine" })
      await store.createEndpoint(endpoint)
      await store.putPolicy({ name: "mine", policy: '{"v":2}', updatedAt: NOW })
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({
        retryPolicy: '{"v":2}',
        version: 2,
      })
      await expect(store.deletePolicy("mine")).rejects.toMatchObject({ code: "conflict" })
      await store.updateEndpoint(endpoint.id, { retryName: null, retryPolicy: null }, NOW)
      await store.deletePolicy("mine")
      expect(await store.getPolicy("mine")).toBeNull()
    })

    test("another encryption key is refused", async () => {
      const { store } = await setUp()
      await store.bindEncryptionKey("first")
      await store.bindEncryptionKey("first")
      await expect(store.bindEncryptionKey("second")).rejects.toMatchObject({ code: "wrong_encryption_key" })
    })
  })
}
