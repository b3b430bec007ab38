/** A store with a delivery for each value of a filter, for the tests of filters and counts. */
import type { NewMessage } from "../store.ts"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import { amendment, calledOff, type SetUp, type Stage } from "./stage.ts"

export interface World extends Stage {
  /** Another endpoint of the application, and one of another tenant's. */
  readonly second: string
  readonly foreignApplication: string
  /** Ids of a message and its delivery, by their names in the tests. */
  readonly ids: { readonly [name: string]: { readonly messageId: string; readonly deliveryId: string } }
  /** Names by the id of the delivery. */
  nameOf(messageId: string): string
}

export async function makeWorld(setUp: SetUp): Promise<World> {
  const stage = await setUp()
  const { store, application, endpoint, attemptAll } = stage
  const second = sample.endpoint(application.id)
  await store.createEndpoint(second)
  const foreign = sample.application({ orgId: OTHER_ORG })
  await store.createApplication(foreign)
  await store.createEndpoint(sample.endpoint(foreign.id, { orgId: OTHER_ORG }))

  const ids: { [name: string]: { messageId: string; deliveryId: string } } = {}
  const accept = async (name: string, more: Partial<NewMessage> = {}) => {
    const message = sample.message(application.id, { to: endpoint.id, ...more })
    await store.acceptMany([message])
    const [delivery] = await store.listDeliveries({ messageId: message.id }, newest(1))
    ids[name] = { messageId: message.id, deliveryId: delivery!.id }
  }
  await accept("ok", { eventType: "order.paid" })
  await attemptAll(200)
  const said = { eventType: "order.sent", channels: ["us", "eu"], tags: ["vip"] }
  await accept("refused", { ...said, maxAttempts: 2, receivedAt: NOW + 2 })
  await attemptAll(500, NOW + 2)
  await attemptAll(null, NOW + 40_000)
  await accept("slow", { channels: ["eu"], tags: ["VIP"], receivedAt: NOW + 1 })
  await attemptAll(503, NOW + 40_000)
  await accept("cancelled", { receivedAt: NOW + 3 })
  await accept("expunged", { receivedAt: NOW + 4 })
  await accept("waits", { tags: ["vip", "x"], receivedAt: NOW + 5, deliverAt: NOW + 5 })
  await accept("elsewhere", { to: second.id, receivedAt: NOW + 6, deliverAt: NOW + 6 })
  await accept("foreign", { orgId: OTHER_ORG, app: foreign.id, to: null })

  const row = async (name: string) => (await store.getDelivery(ORG, ids[name]!.deliveryId))!
  await store.amendIfUnchanged([
    calledOff(await row("cancelled")),
    calledOff(await row("expunged"), { deadReason: "expunged" }),
  ])
  await store.amendIfUnchanged([amendment(await row("cancelled"), { discardedAt: NOW })])
  const nameOf = (messageId: string) =>
    Object.keys(ids).find((name) => ids[name]!.messageId === messageId) ?? messageId
  return { ...stage, second: second.id, foreignApplication: foreign.id, ids, nameOf }
}
