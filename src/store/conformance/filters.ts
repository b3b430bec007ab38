/** Filters: a list, a count and a task find the same rows. */
import { describe, expect, test } from "vitest"
import type { AttemptFilter, Content, DeliveryFilter, Span } from "../store.ts"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"
import { makeWorld, type World } from "./world.ts"

/** A filter, and the rows that it finds, in the order of acceptance. */
type Case<F> = readonly [filter: (world: World) => F, found: readonly string[]]

const ALL = ["ok", "refused", "slow", "cancelled", "expunged", "waits", "elsewhere"]

const DELIVERIES: readonly Case<DeliveryFilter>[] = [
  [() => ({}), [...ALL, "foreign"]],
  [() => ({ orgId: ORG }), ALL],
  [() => ({ orgId: OTHER_ORG }), ["foreign"]],
  [({ foreignApplication }) => ({ appId: foreignApplication }), ["foreign"]],
  [({ foreignApplication }) => ({ appId: foreignApplication, orgId: ORG }), []],
  [({ second }) => ({ endpointId: second }), ["elsewhere"]],
  [({ ids }) => ({ messageId: ids.slow!.messageId }), ["slow"]],
  [() => ({ status: "failed" }), ["slow"]],
  [() => ({ status: "dead" }), ["refused", "cancelled", "expunged"]],
  [() => ({ live: true, orgId: ORG }), ["slow", "waits", "elsewhere"]],
  [() => ({ live: true, orgId: ORG, startableBy: NOW + 5 }), ["slow", "waits"]],
  [() => ({ live: true, orgId: ORG, startableBy: NOW + 5, datesBy: NOW - 1 }), ["slow"]],
  [() => ({ live: true, orgId: ORG, startableBy: NOW - 1, datesBy: NOW + 5 }), ["slow", "waits"]],
  [({ application }) => ({ live: true, appId: application.id, startableBy: NOW - 1 }), ["slow"]],
  [() => ({ deadReason: "exhausted" }), ["refused"]],
  [() => ({ calledOff: true }), ["cancelled", "expunged"]],
  [() => ({ calledOff: false }), ["refused"]],
  [() => ({ status: "dead", undiscarded: true }), ["refused", "expunged"]],
  [() => ({ eventTypes: ["order.paid", "order.sent"] }), ["ok", "refused"]],
  [() => ({ eventTypes: [] }), []],
  [() => ({ channel: "eu" }), ["refused", "slow"]],
  [() => ({ tag: "vip" }), ["refused", "waits"]],
  [() => ({ since: NOW + 4 }), ["expunged", "waits", "elsewhere"]],
  [() => ({ until: NOW + 1 }), ["ok", "foreign"]],
  [() => ({ cause: "timeout" }), ["refused"]],
  [() => ({ cause: "HTTP 503" }), ["slow"]],
  [() => ({ cause: "HTTP 50" }), []],
  [() => ({ status: "dead", cause: "" }), ["cancelled", "expunged"]],
  [() => ({ responseClass: 200 }), ["ok"]],
  [() => ({ responseClass: 500 }), ["slow"]],
  // Deliveries without an attempt have no response.
  [() => ({ responseClass: 0 }), ["refused"]],
  [everything, ["refused"]],
]

function everything({ application, endpoint, ids }: World): DeliveryFilter {
  return {
    orgId: ORG,
    appId: application.id,
    endpointId: endpoint.id,
    messageId: ids.refused!.messageId,
    status: "dead",
    deadReason: "exhausted",
    cause: "timeout",
    calledOff: false,
    responseClass: 0,
    undiscarded: true,
    eventTypes: ["order.sent"],
    channel: "eu",
    tag: "vip",
    since: NOW + 2,
    until: NOW + 3,
  }
}

const ATTEMPTS: readonly Case<AttemptFilter>[] = [
  [() => ({}), ["ok", "refused", "refused", "slow"]],
  [() => ({ orgId: ORG }), ["ok", "refused", "refused", "slow"]],
  [() => ({ orgId: OTHER_ORG }), []],
  [({ application }) => ({ appId: application.id }), ["ok", "refused", "refused", "slow"]],
  [({ foreignApplication }) => ({ appId: foreignApplication }), []],
  [
    ({ application }) => ({ appId: application.id, orgId: ORG, statuses: ["failed"] }),
    ["refused", "refused", "slow"],
  ],
  [({ application, ids }) => ({ appId: application.id, messageId: ids.slow!.messageId }), ["slow"]],
  [({ foreignApplication, ids }) => ({ appId: foreignApplication, messageId: ids.slow!.messageId }), []],
  [({ ids }) => ({ deliveryId: ids.slow!.deliveryId }), ["slow"]],
  [({ endpoint }) => ({ endpointId: endpoint.id }), ["ok", "refused", "refused", "slow"]],
  [({ second }) => ({ endpointId: second }), []],
  [({ ids }) => ({ messageId: ids.refused!.messageId }), ["refused", "refused"]],
  [() => ({ statuses: ["succeeded"] }), ["ok"]],
  [() => ({ statuses: ["succeeded", "failed"] }), ["ok", "refused", "refused", "slow"]],
  [() => ({ statuses: ["unknown"] }), []],
  [() => ({ eventTypes: ["order.paid", "never"] }), ["ok"]],
  [() => ({ channel: "eu" }), ["refused", "refused", "slow"]],
  [() => ({ tag: "vip" }), ["refused", "refused"]],
  [() => ({ since: NOW + 40_000 }), ["refused", "slow"]],
  [() => ({ until: NOW + 40_000 }), ["ok", "refused"]],
  [() => ({ responseClass: 500 }), ["refused", "slow"]],
  [() => ({ responseClass: 0 }), ["refused"]],
  [({ endpoint }) => ({ orgId: ORG, endpointId: endpoint.id, tag: "vip", responseClass: 500 }), ["refused"]],
]

const MESSAGES: readonly Case<Content & Span>[] = [
  [() => ({}), ALL],
  [() => ({ eventTypes: ["order.paid", "order.sent"] }), ["ok", "refused"]],
  [() => ({ channel: "eu" }), ["refused", "slow"]],
  [() => ({ tag: "vip" }), ["refused", "waits"]],
  [() => ({ since: NOW + 4 }), ["expunged", "waits", "elsewhere"]],
  [() => ({ until: NOW + 1 }), ["ok"]],
  [() => ({ channel: "eu", tag: "vip", since: NOW + 2, until: NOW + 3 }), ["refused"]],
]

export function filters(name: string, setUp: SetUp): void {
  const oldestFirst = { ...newest(99), order: "ascending" } as const

  describe(`${name}: filters`, () => {
    test("a list, a count and a task find the same deliveries", async () => {
      const world = await makeWorld(setUp)
      const { store, nameOf } = world
      const names = (rows: readonly { messageId: string }[]) => rows.map(({ messageId }) => nameOf(messageId))
      for (const [given, found] of DELIVERIES) {
        const filter = given(world)
        const what = JSON.stringify(filter)
        expect(names(await store.listDeliveries(filter, oldestFirst)), what).toEqual(found)
        expect(await store.countDeliveries(filter), what).toBe(found.length)
        const { id } = await store.createTask(sample.task({ filter }))
        expect(names(await store.readTask(id, 99)), what).toEqual(found)
      }
    })

    test.each([
      { paused: true },
      { disabled: true },
    ])("deliveries of an endpoint with %j are excluded on demand", async (state) => {
      const { store, second } = await makeWorld(setUp)
      const filter = { live: true, orgId: ORG, endpointSends: true }
      expect(await store.countDeliveries(filter)).toBe(3)
      await store.updateEndpoint(second, state, NOW)
      expect(await store.countDeliveries(filter)).toBe(2)
    })

    test("a list and a count find the same attempts", async () => {
      const world = await makeWorld(setUp)
      for (const [given, found] of ATTEMPTS) {
        const filter = given(world)
        const rows = await world.store.listAttempts(filter, oldestFirst)
        const names = rows.map(({ messageId }) => world.nameOf(messageId))
        expect(names, JSON.stringify(filter)).toEqual(found)
        const counts = await world.store.countAttempts(filter)
        for (const status of ["succeeded", "failed", "unknown"] as const)
          expect(counts[status], JSON.stringify(filter)).toBe(
            rows.filter((one) => one.status === status).length,
          )
      }
    })

    test("a list, a count and a task find the same messages", async () => {
      const world = await makeWorld(setUp)
      const { store, application, nameOf } = world
      const names = (rows: readonly { id: string }[]) => rows.map(({ id }) => nameOf(id))
      for (const [given, found] of MESSAGES) {
        const filter = { ...given(world), appId: application.id }
        const what = JSON.stringify(filter)
        expect(names(await store.listMessages(filter, oldestFirst, false)), what).toEqual(found)
        expect(await store.countMessages(filter), what).toBe(found.length)
        const { id } = await store.createTask(sample.task({ action: "expunge", filter }))
        expect(names(await store.readTaskMessages(id, 99)), what).toEqual(found)
      }
    })
  })
}
