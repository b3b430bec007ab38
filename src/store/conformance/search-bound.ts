/** Bounded searches: which rows they read, and where they say that they ended. */
import { getRandomValues } from "node:crypto"
import { describe, expect, test } from "vitest"
import { createIds } from "../../core/ids.ts"
import type { DeliveryFilter, NewMessage, Page } from "../store.ts"
import { NOW, newest, sample } from "./samples.ts"
import { amendment, type SetUp, type Stage } from "./stage.ts"

const HOUR = 3_600_000
const oldest: Page = { limit: 9, order: "ascending", from: null, back: false }
const ids = createIds((into) => getRandomValues(into))

/** One message an hour, with ids of its time. Their tags are their numbers. */
async function hourly(
  { store, application, endpoint }: Stage,
  count: number,
  more: Partial<NewMessage> = {},
) {
  const messages = Array.from({ length: count }, (_, i) => {
    const receivedAt = NOW + i * HOUR
    const tags = [String(i)]
    return sample.message(application.id, {
      ...{ id: ids.make("msg", receivedAt), receivedAt, tags, to: endpoint.id, wakeAt: receivedAt },
      ...more,
    })
  })
  await store.acceptMany(messages)
  const numbers = new Map(messages.map(({ id, tags }) => [id, Number(tags[0])]))
  return (rows: readonly { readonly messageId: string }[]) =>
    rows.map(({ messageId }) => numbers.get(messageId))
}

export function searchBound(name: string, setUp: SetUp): void {
  describe(`${name}: bounded searches`, () => {
    test("a list of messages reads the newest rows of the application, and continues where it ended", async () => {
      const stage = await setUp()
      const { store, application } = stage
      await hourly(stage, 7)
      const search = async (page: Page, tag: string) => {
        const { filter, end } = await store.boundMessages({ appId: application.id, tag }, page, 3)
        const found = await store.listMessages(filter, page, false)
        return { found: found.map(({ tags }) => tags[0]), end }
      }
      expect(await search(newest(9), "4")).toMatchObject({ found: ["4"], end: { at: NOW + 4 * HOUR } })
      const first = await search(newest(9), "3")
      expect(first.found).toEqual([])
      const second = await search({ ...newest(9), from: first.end!.seq }, "3")
      expect(second).toMatchObject({ found: ["3"], end: { at: NOW + HOUR } })
      expect(await search({ ...newest(9), from: second.end!.seq }, "0")).toEqual({ found: ["0"], end: null })
      expect(await search(oldest, "2")).toMatchObject({ found: ["2"], end: { at: NOW + 2 * HOUR } })
      expect((await search(oldest, "3")).found).toEqual([])
    })

    test("a span is found without reading the rows before and after it", async () => {
      const stage = await setUp()
      const { store, application, endpoint, lanes, fetch } = stage
      const numbersOf = await hourly(stage, 9)
      const span = { since: NOW + 2 * HOUR, until: NOW + 4 * HOUR }
      const ofApp = { appId: application.id, ...span }
      const messages = await store.boundMessages(ofApp, newest(9), 4)
      expect(messages.end).toBeNull()
      expect(
        (await store.listMessages(messages.filter, newest(9), false)).map(({ tags }) => tags[0]),
      ).toEqual(["3", "2"])
      for (const filter of [ofApp, { endpointId: endpoint.id, ...span }])
        for (const page of [newest(9), oldest]) {
          const bound = await store.boundDeliveries(filter, page, 4)
          expect(bound.end).toBeNull()
          const found = numbersOf(await store.listDeliveries(bound.filter, page))
          expect(found).toEqual(page === oldest ? [2, 3] : [3, 2])
        }
      const { deliveries } = await fetch(1, 20, NOW + 9 * HOUR)
      for (const delivery of deliveries) {
        const startedAt = delivery.receivedAt
        const attempt = sample.attempt({ id: ids.make("atmpt", startedAt), startedAt })
        await lanes.giveBack([{ endpointId: endpoint.id, token: 1, delivery, attempt }])
      }
      const bound = await store.boundAttempts({ endpointId: endpoint.id, ...span }, newest(9), 4)
      expect(bound.end).toBeNull()
      expect(numbersOf(await store.listAttempts(bound.filter, newest(9)))).toEqual([3, 2])
    })

    test("few waiting deliveries are all searched, and of many the newest", async () => {
      const stage = await setUp()
      const { store, application, endpoint, attemptAll } = stage
      const numbersOf = await hourly(stage, 6)
      await attemptAll(200, NOW + 9 * HOUR)
      await hourly(stage, 2)
      for (const of of [{}, { endpointId: endpoint.id }, { appId: application.id }]) {
        const search = async (filter: DeliveryFilter, most: number) => {
          const bound = await store.boundDeliveries({ ...of, ...filter }, newest(9), most)
          const found = await store.listDeliveries(bound.filter, newest(9))
          expect(await store.countDeliveries(bound.filter)).toBe(found.length)
          return [found.length, bound.end?.at]
        }
        expect(await search({ status: "pending" }, 2)).toEqual([2, undefined])
        expect(await search({ live: true }, 2)).toEqual([2, undefined])
        expect(await search({ live: true }, 1)).toEqual([1, NOW + HOUR])
        expect(await search({ status: "failed" }, 2)).toEqual([0, undefined])
        expect(await search({ status: "delivered" }, 9)).toEqual([6, undefined])
      }
      expect(numbersOf(await store.listDeliveries({ status: "delivered" }, newest(1)))).toEqual([5])
    })

    test("dead letters are searched, counted and grouped by their own index, also those of one endpoint", async () => {
      const stage = await setUp()
      const { store, application, endpoint, attemptAll } = stage
      await hourly(stage, 4, { maxAttempts: 1 })
      await attemptAll(500, NOW + 9 * HOUR)
      const numbersOf = await hourly(stage, 3)
      await attemptAll(200, NOW + 9 * HOUR)
      const filter = { status: "dead", undiscarded: true } as const
      for (const of of [{}, { endpointId: endpoint.id }, { appId: application.id }]) {
        const bound = await store.boundDeliveries({ ...of, ...filter }, newest(9), 3)
        expect(bound.end).toMatchObject({ at: NOW + HOUR })
        expect(await store.listDeliveries(bound.filter, newest(9))).toHaveLength(3)
        expect(await store.countDeliveries(bound.filter)).toBe(3)
        expect(await store.groupDead(bound.filter, 9)).toMatchObject([
          { count: 3, oldestAt: NOW + HOUR, newestAt: NOW + 3 * HOUR },
        ])
        expect((await store.boundDeliveries({ ...of, ...filter }, newest(9), 5)).end).toBeNull()
      }
      const [latest] = await store.listDeliveries(filter, newest(1))
      await store.amendIfUnchanged([amendment(latest!, { discardedAt: NOW })])
      const left = await store.boundDeliveries({ endpointId: endpoint.id, ...filter }, newest(9), 3)
      expect(await store.listDeliveries(left.filter, newest(9))).toHaveLength(3)
      const all = await store.boundDeliveries({}, newest(9), 5)
      expect(await store.countByStatus(all.filter)).toMatchObject({ delivered: 3, dead: 2 })
      expect(numbersOf(await store.listDeliveries(all.filter, newest(1)))).toEqual([2])
    })

    test("an application's attempts are searched evenly over its endpoints", async () => {
      const stage = await setUp()
      const { store, application, endpoint, send, attemptAll } = stage
      const other = sample.endpoint(application.id)
      await store.createEndpoint(other)
      for (const [i, one] of [other, endpoint, endpoint, endpoint, endpoint].entries()) {
        await send({ to: one.id })
        await attemptAll(200, NOW + i, one)
      }
      const of = { appId: application.id }
      const page = newest(2)
      const bound = await store.boundAttempts(of, page, 4)
      expect(bound.end).toMatchObject({ at: NOW + 3 })
      expect(await store.listAttempts(bound.filter, newest(9))).toHaveLength(2)
      const next = await store.boundAttempts(of, { ...page, from: bound.end!.seq }, 8)
      expect(next.end).toBeNull()
      expect(await store.listAttempts(next.filter, { ...newest(9), from: bound.end!.seq })).toHaveLength(3)
    })
  })
}
