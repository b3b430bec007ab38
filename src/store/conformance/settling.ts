/** Settling: the outcomes of attempts, under the token of their claim. */
import { describe, expect, test } from "vitest"
import { bytesOfText, toBuffer } from "../../core/bytes.ts"
import type { ClaimedDelivery } from "../store.ts"
import { lanesOf } from "./lanes.ts"
import { claimed, held, laneFetch, NOW, newest, ORG, settlement } from "./samples.ts"
import { calledOff, revived, type SetUp } from "./stage.ts"

export function settling(name: string, setUp: SetUp): void {
  describe(`${name}: settling`, () => {
    test("failures from before an operator enabled the endpoint do not disable it again", async () => {
      const { store, lanes, endpoint, send, fetch } = await setUp()
      for (let i = 0; i < 2; i++) await send()
      const { deliveries } = await fetch(1)
      const disabling = (i: number, epoch: number) => {
        const settled = settlement(endpoint.id, 1, deliveries[i]!, 500)
        const change = { ...settled.change, disableEndpoint: true }
        return { ...settled, change, gate: { ...held(NOW, i + 1, epoch), disables: "failing" as const } }
      }
      const isDisabled = async () => (await store.getEndpoint(endpoint.appId, endpoint.id))!.disabled
      await store.updateEndpoint(endpoint.id, { disabled: true }, NOW)
      await store.updateEndpoint(endpoint.id, { disabled: false }, NOW)
      await lanes.settle([disabling(0, 0)])
      expect(await isDisabled()).toBe(false)
      await lanes.settle([disabling(1, 1)])
      expect(await isDisabled()).toBe(true)
    })

    test("applies the change with its attempt", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      expect(await lanesOf(store).settle([settlement(endpoint.id, 7, claimed!, 500)])).toEqual(["applied"])
      expect(await store.getDelivery(ORG, claimed!.id)).toMatchObject({
        status: "failed",
        attemptCount: 1,
        nextRetryAt: NOW + 30_000,
        lastAttemptedAt: NOW,
        errorDetail: "HTTP 500",
      })
      const [attempt] = await store.listAttempts({ deliveryId: claimed!.id }, newest(9))
      expect(attempt).toMatchObject({
        status: "failed",
        responseStatus: 500,
        endpointId: endpoint.id,
        timing: "1,2,,4",
      })
      expect(Buffer.from(attempt!.responseBody!)).toEqual(Buffer.from([0, 255, 1]))
    })

    test.each([
      ["nothing", ""],
      ["ASCII", 'a\0b\x7f"'],
      ["other text", "\u00e9\u0142"],
      ["a large text", "x".repeat(20_000)],
    ])("stores %s as bytes, given as a text or as bytes", async (_what, text) => {
      const { store, application, endpoint, send, fetch } = await setUp()
      const expected = Buffer.from(text)
      const forms = [bytesOfText(text), expected]
      for (const payload of forms) {
        const { messageId } = await send({ payload })
        const message = await store.getMessage(application.id, messageId)
        expect(toBuffer(message!.payload!)).toEqual(expected)
      }
      const { deliveries } = await fetch(7)
      expect(deliveries.map(({ payload }) => toBuffer(payload!))).toEqual([expected, expected])
      const settlements = deliveries.map((claimed, i) => {
        const { attempt, ...rest } = settlement(endpoint.id, 7, claimed, 200)
        return { ...rest, attempt: { ...attempt!, responseBody: forms[i]! } }
      })
      expect(await lanesOf(store).settle(settlements)).toEqual(["applied", "applied"])
      const attempts = await store.listAttempts({ endpointId: endpoint.id }, newest(9))
      expect(attempts.map(({ responseBody }) => toBuffer(responseBody!))).toEqual([expected, expected])
    })

    test.each([
      200, 500,
    ])("logs HTTP %i from before an operator's retry without counting it for the retry", async (status) => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [first] = (await fetch(7)).deliveries
      await lanesOf(store).settle([settlement(endpoint.id, 7, first!, 500)])
      const [second] = (await fetch(8, 1, NOW + 30_000)).deliveries
      const before = (await store.getDelivery(ORG, second!.id))!
      expect(await store.amendIfUnchanged([revived(before)])).toEqual([true])
      const begun = await store.getDelivery(ORG, second!.id)
      expect(begun).toMatchObject({ status: "pending", attemptCount: 0 })
      const outcome = settlement(endpoint.id, 8, second!, status, NOW + 30_000)
      expect(await lanesOf(store).settle([outcome])).toEqual(["superseded"])
      expect(await store.getDelivery(ORG, second!.id)).toEqual(begun)
      expect(await store.listAttempts({ deliveryId: second!.id }, newest(9))).toHaveLength(2)
      expect(await lanesOf(store).settle([outcome])).toEqual(["stale"])
      expect((await fetch(9, 1, NOW + 30_000)).deliveries).toMatchObject([{ attemptCount: 0, manual: true }])
    })

    test.each([
      ["a retry", 200],
      ["a retry", 500],
      ["a cancel and a retry", 200],
      ["a cancel and a retry", 500],
    ] as const)("does not count the first attempt for the retry after %s (HTTP %i)", async (what, status) => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [first] = (await fetch(7)).deliveries
      if (what === "a cancel and a retry")
        await store.amendIfUnchanged([calledOff((await store.getDelivery(ORG, first!.id))!)])
      await store.amendIfUnchanged([revived((await store.getDelivery(ORG, first!.id))!, NOW + 1000)])
      const begun = await store.getDelivery(ORG, first!.id)
      expect(begun).toMatchObject({ status: "pending", attemptCount: 0, ageFrom: NOW + 1000 })
      const outcome = settlement(endpoint.id, 7, first!, status, NOW + 2000)
      expect(await lanesOf(store).settle([outcome])).toEqual(["superseded"])
      expect(await store.getDelivery(ORG, first!.id)).toEqual(begun)
      expect(await store.listAttempts({ deliveryId: first!.id }, newest(9))).toHaveLength(1)
      expect(await lanesOf(store).settle([outcome])).toEqual(["stale"])
    })

    test("refuses an outcome of a lost claim, and one that was already written", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      const [taken] = (await fetch(8)).deliveries
      expect(taken!.id).toBe(claimed!.id)
      expect(await lanesOf(store).settle([settlement(endpoint.id, 7, claimed!, 200)])).toEqual(["stale"])
      expect(await store.getDelivery(ORG, claimed!.id)).toMatchObject({ status: "pending" })
      const outcome = settlement(endpoint.id, 8, taken!, 200)
      expect(await lanesOf(store).settle([outcome])).toEqual(["applied"])
      expect(await lanesOf(store).settle([outcome])).toEqual(["stale"])
      expect(await store.getDelivery(ORG, claimed!.id)).toMatchObject({
        status: "delivered",
        attemptCount: 1,
      })
    })

    test.each([
      200, 500,
    ])("keeps a delivery that an operator called off, and counts the attempt with HTTP %i", async (status) => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(7)).deliveries
      const row = (await store.getDelivery(ORG, claimed!.id))!
      expect(await store.amendIfUnchanged([calledOff(row)])).toEqual([true])
      const outcome = settlement(endpoint.id, 7, claimed!, status)
      expect(await lanesOf(store).settle([outcome])).toEqual(["superseded"])
      expect(await store.getDelivery(ORG, claimed!.id)).toMatchObject({
        status: "dead",
        deadReason: "cancelled",
        attemptCount: 1,
        lastAttemptedAt: NOW,
      })
      expect(await store.listAttempts({ deliveryId: claimed!.id }, newest(9))).toHaveLength(1)
      expect(await lanesOf(store).settle([outcome])).toEqual(["stale"])
      expect(await store.getDelivery(ORG, claimed!.id)).toMatchObject({ attemptCount: 1 })
    })

    test("settles current and late outcomes in one call", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      for (let i = 0; i < 4; i++) await send()
      const { deliveries } = await fetch(7)
      for (const i of [0, 2])
        await store.amendIfUnchanged([calledOff((await store.getDelivery(ORG, deliveries[i]!.id))!)])
      const outcomes = deliveries.map((one, i) => settlement(endpoint.id, 7, one, i === 2 ? 200 : 500))
      expect(await lanesOf(store).settle(outcomes)).toEqual([
        "superseded",
        "applied",
        "superseded",
        "applied",
      ])
      const counts = deliveries.map(async ({ id }) => (await store.getDelivery(ORG, id))!.attemptCount)
      expect(await Promise.all(counts)).toEqual([1, 1, 1, 1])
    })

    test("a delivery that was given back is fetched as before", async () => {
      const { store, endpoint, send, fetch } = await setUp()
      await send()
      const [first] = (await fetch(1)).deliveries
      await lanesOf(store).giveBack([{ ...claimed(endpoint.id, 1, first!), attempt: null }])
      const [again] = (await fetch(2)).deliveries
      expect(again).toEqual(first)
      expect(await store.listAttempts({}, newest(9))).toEqual([])
    })

    test("a delivery of a crashed claim becomes an attempt of unknown outcome and counts as a stall", async () => {
      const { send, fetch, reopen, endpoint } = await setUp()
      await send()
      await fetch(1)
      const again = await reopen()
      const work = await lanesOf(again).fetch(laneFetch(endpoint.id, 2), NOW)
      expect(work.deliveries).toMatchObject([{ attemptCount: 0, stalls: 1 }])
      expect(await again.listAttempts({}, newest(9))).toMatchObject([{ status: "unknown", startedAt: NOW }])
    })

    test.each([
      false,
      true,
    ])("a delivery that was in hand at several crashes waits longer each time (ordered: %s)", async (ordered) => {
      const { store, endpoint, send, fetch } = await setUp()
      await store.updateEndpoint(endpoint.id, { ordered }, NOW)
      await send()
      let now = NOW
      let token = 1
      expect((await fetch(token++, 1, now)).deliveries).toMatchObject([{ stalls: 0 }])
      for (const [waitMs, stalls] of [
        [0, 1],
        [1000, 2],
        [10_000, 3],
        [60_000, 4],
        [0, 5],
      ] as const) {
        if (waitMs > 0) {
          expect(await fetch(token++, 1, now)).toMatchObject({ deliveries: [] })
          const held = await fetch(token++, 1, now + waitMs - 1)
          expect(held).toMatchObject({ deliveries: [], nextDueAt: now + waitMs })
        }
        now += waitMs
        expect((await fetch(token++, 1, now)).deliveries).toMatchObject([{ stalls }])
      }
    })

    test("a manual delivery is marked until it is settled, and so are its attempts", async () => {
      const { store, endpoint, fetch, killOff } = await setUp()
      const [dead] = await killOff(1)
      expect(dead).toMatchObject({ status: "dead", manual: false })
      await store.amendIfUnchanged([revived(dead!)])
      expect(await store.getDelivery(ORG, dead!.id)).toMatchObject({ status: "pending", manual: true })
      expect((await fetch(201)).deliveries).toMatchObject([{ manual: true }])
      // The first claim is lost: its attempt of unknown outcome is manual, too.
      const [again] = (await fetch(202)).deliveries
      await lanesOf(store).settle([settlement(endpoint.id, 202, { ...again!, maxAttempts: null }, 500)])
      expect(await store.getDelivery(ORG, dead!.id)).toMatchObject({ status: "failed", manual: false })
      const [last] = (await fetch(203, 1, NOW + 30_000)).deliveries
      await lanesOf(store).settle([settlement(endpoint.id, 203, last!, 200, NOW + 30_000)])
      const attempts = await store.listAttempts({ deliveryId: dead!.id }, newest(9))
      expect(attempts.map(({ status, manual }) => [status, manual])).toEqual([
        ["succeeded", false],
        ["failed", true],
        ["unknown", true],
        ["failed", false],
      ])
    })

    test("410 disables the endpoint and Retry-After holds it, in the same transaction", async () => {
      const { store, application, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(1)).deliveries
      const plain = settlement(endpoint.id, 1, claimed!, 500)
      await lanesOf(store).settle([
        { ...plain, change: { ...plain.change, disableEndpoint: true }, gate: held(NOW + 777, 1) },
      ])
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({
        disabled: true,
        holdUntil: NOW + 777,
      })
      expect((await send()).matched).toBe(0)
    })

    test("of the gate updates of one lane, the highest revision of the newest token stays", async () => {
      const { store, application, endpoint, send, fetch } = await setUp()
      for (let n = 0; n < 4; n++) await send()
      const [first, second, third] = (await fetch(1, 3)).deliveries
      const hold = async (token: number, delivery: ClaimedDelivery, until: number, revision: number) => {
        const plain = settlement(endpoint.id, token, delivery, 200)
        await lanesOf(store).settle([{ ...plain, gate: held(until, revision) }])
        return (await store.getEndpoint(application.id, endpoint.id))!.holdUntil
      }
      expect(await hold(1, first!, NOW - 2, 8)).toBe(NOW - 2)
      expect(await hold(1, second!, NOW - 9, 7)).toBe(NOW - 2)
      expect(await hold(1, third!, NOW - 1, 9)).toBe(NOW - 1)
      const [last] = (await fetch(2)).deliveries
      expect(await hold(2, last!, NOW - 3, 1)).toBe(NOW - 3)
    })

    test.each([
      [8, 9],
      [9, 8],
    ])("of the gate updates of one batch, revisions %i and %i, the highest stays", async (...revisions) => {
      const { store, application, endpoint, send, fetch } = await setUp()
      await send()
      await send()
      const { deliveries } = await fetch(1, 2)
      const settlements = deliveries.map((one, i) => ({
        ...settlement(endpoint.id, 1, one, 200),
        gate: held(NOW - revisions[i]!, revisions[i]!),
      }))
      await lanesOf(store).settle(settlements)
      expect((await store.getEndpoint(application.id, endpoint.id))!.holdUntil).toBe(NOW - 9)
    })

    test("an operator's reset of the gate is not undone by an outcome from before it", async () => {
      const { store, application, endpoint, send, fetch } = await setUp()
      await send()
      await send()
      const { gate, deliveries } = await fetch(1, 2)
      const [before, after] = deliveries.map((one) => settlement(endpoint.id, 1, one, 500))
      const reset = await store.updateEndpoint(endpoint.id, { holdUntil: null }, NOW)
      expect(reset.gateEpoch).toBe(gate.epoch + 1)
      expect(await lanesOf(store).settle([{ ...before!, gate: held(NOW + 5, 1, gate.epoch) }])).toEqual([
        "applied",
      ])
      expect((await store.getEndpoint(application.id, endpoint.id))!.holdUntil).toBe(null)
      await lanesOf(store).settle([{ ...after!, gate: held(NOW + 6, 2, reset.gateEpoch) }])
      expect((await store.getEndpoint(application.id, endpoint.id))!.holdUntil).toBe(NOW + 6)
    })

    test("410 disables the endpoint also after its delivery was called off", async () => {
      const { store, application, endpoint, send, fetch } = await setUp()
      await send()
      const [claimed] = (await fetch(1)).deliveries
      await store.amendIfUnchanged([calledOff((await store.getDelivery(ORG, claimed!.id))!)])
      const plain = settlement(endpoint.id, 1, claimed!, 500)
      const gone = { ...plain, change: { ...plain.change, disableEndpoint: true } }
      expect(await lanesOf(store).settle([gone])).toEqual(["superseded"])
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({ disabled: true })
    })
  })
}
