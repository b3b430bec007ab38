/** Tenants may use the same names, and do not see each other. */
import { describe, expect, test } from "vitest"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import type { SetUp, Stage } from "./stage.ts"

export function tenants(name: string, setUp: SetUp): void {
  /** An application with the same uid as one of ours. */
  const namesake = async ({ store }: Stage) => {
    const ours = sample.application({ uid: "acme" })
    const theirs = sample.application({ uid: "acme", orgId: OTHER_ORG })
    await store.createApplication(ours)
    await store.createApplication(theirs)
    return { ours, theirs }
  }

  describe(`${name}: tenants`, () => {
    test("a uid belongs to one application of each tenant", async () => {
      const stage = await setUp()
      const { store } = stage
      const { ours, theirs } = await namesake(stage)
      expect(await store.getApplication(ORG, "acme")).toEqual(ours)
      expect(await store.getApplication(OTHER_ORG, "acme")).toEqual(theirs)
      expect(await store.getApplication(ORG, theirs.id)).toBeNull()
      expect(await store.listApplications(OTHER_ORG, newest(9))).toEqual([theirs])
      await expect(
        store.createApplication(sample.application({ uid: "acme", orgId: OTHER_ORG })),
      ).rejects.toMatchObject({ code: "conflict", field: "uid" })
    })

    test("a tenant's endpoints are those of all its applications, without deleted ones", async () => {
      const stage = await setUp()
      const { store, endpoint } = stage
      const { ours, theirs } = await namesake(stage)
      const [second, gone] = [sample.endpoint(ours.id), sample.endpoint(ours.id)]
      const foreign = sample.endpoint(theirs.id, { orgId: OTHER_ORG })
      for (const one of [second, gone, foreign]) await store.createEndpoint(one)
      await store.deleteEndpoint(gone.id, sample.task({ action: "cancel" }))
      const ids = async (orgId: string) =>
        (await store.listEndpoints({ orgId }, newest(9))).map(({ id }) => id)
      expect((await ids(ORG)).sort()).toEqual([endpoint.id, second.id].sort())
      expect(await ids(OTHER_ORG)).toEqual([foreign.id])
    })

    test("a message goes to its own tenant's application, also when both have got messages before", async () => {
      const stage = await setUp()
      const { store } = stage
      const { ours, theirs } = await namesake(stage)
      await store.createEndpoint(sample.endpoint(ours.id))
      for (let i = 0; i < 2; i++) await store.createEndpoint(sample.endpoint(theirs.id, { orgId: OTHER_ORG }))
      for (let i = 0; i < 2; i++) {
        expect((await store.acceptMany([sample.message("acme")]))[0]).toMatchObject({ matched: 1 })
        expect((await store.acceptMany([sample.message("acme", { orgId: OTHER_ORG })]))[0]).toMatchObject({
          matched: 2,
        })
      }
      await expect(store.acceptMany([sample.message(theirs.id)])).rejects.toMatchObject({ code: "not_found" })
      const messages = await store.listMessages({ appId: theirs.id }, newest(9), false)
      expect(messages).toHaveLength(2)
    })

    test("idempotency keys and event ids are unique by application", async () => {
      const stage = await setUp()
      await namesake(stage)
      const idempotency = { key: Buffer.alloc(16, 1), digest: Buffer.alloc(16, 2) }
      for (const orgId of [ORG, OTHER_ORG]) {
        const message = sample.message("acme", { orgId, idempotency, eventId: "order-1" })
        expect((await stage.store.acceptMany([message]))[0]).toMatchObject({ duplicate: false })
      }
    })

    test("a delivery is found by its own tenant only", async () => {
      const { store, send } = await setUp()
      const { messageId } = await send()
      const [delivery] = await store.listDeliveries({ messageId }, newest(1))
      expect(await store.getDelivery(ORG, delivery!.id)).toEqual(delivery)
      expect(await store.getDelivery(OTHER_ORG, delivery!.id)).toBeNull()
    })

    test("two tenants can have a policy of the same name", async () => {
      const { store, application } = await setUp()
      const theirs = sample.application({ orgId: OTHER_ORG })
      await store.createApplication(theirs)
      for (const orgId of [ORG, OTHER_ORG])
        await store.putPolicy({ orgId, name: "mine", policy: JSON.stringify({ orgId }), updatedAt: NOW })
      const ours = sample.endpoint(application.id, { retryName: "mine" })
      await store.createEndpoint(ours)
      const foreign = sample.endpoint(theirs.id, { orgId: OTHER_ORG, retryName: "mine" })
      await store.createEndpoint(foreign)
      await store.putPolicy({ orgId: OTHER_ORG, name: "mine", policy: "{}", updatedAt: NOW })
      expect(await store.getEndpoint(application.id, ours.id)).toMatchObject({
        retryPolicy: `{"orgId":"${ORG}"}`,
        version: 1,
      })
      expect(await store.getEndpoint(theirs.id, foreign.id)).toMatchObject({ retryPolicy: "{}", version: 2 })
      expect(await store.listPolicies(OTHER_ORG)).toEqual([
        { orgId: OTHER_ORG, name: "mine", policy: "{}", updatedAt: NOW },
      ])
      await store.updateEndpoint(ours.id, { retryName: null, retryPolicy: null }, NOW)
      await store.deletePolicyIfUnused(ORG, "mine")
      expect(await store.getPolicy(ORG, "mine")).toBeNull()
      await expect(store.deletePolicyIfUnused(OTHER_ORG, "mine")).rejects.toMatchObject({ code: "conflict" })
    })
  })
}
