/** Applications, endpoints and policies: written, read, changed and deleted. */
import { describe, expect, test } from "vitest"
import type { ApplicationFilter, Endpoint, EndpointFilter, Page, Store } from "../store.ts"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

export function resources(name: string, setUp: SetUp): void {
  describe(`${name}: applications, endpoints and policies`, () => {
    test("a uid is used once, and free again after deletion", async () => {
      const { store } = await setUp()
      const application = sample.application({ uid: "acme" })
      await store.createApplication(application)
      await expect(store.createApplication(sample.application({ uid: "acme" }))).rejects.toMatchObject({
        code: "conflict",
        field: "uid",
      })
      expect(await store.getApplication(ORG, "acme")).toEqual(application)
      await store.deleteApplication(
        application.id,
        sample.task({ action: "cancel", filter: { appId: application.id, live: true } }),
      )
      expect(await store.getApplication(ORG, "acme")).toBeNull()
      await store.createApplication(sample.application({ uid: "acme" }))
    })

    test("an application reads back as it was written, and as it was changed", async () => {
      const { store } = await setUp()
      const application = sample.application({ uid: "acme", metadata: { plan: "gold" }, rateLimit: 5 })
      await store.createApplication(application)
      expect(await store.getApplication(ORG, application.id)).toEqual(application)
      const patch = { uid: null, name: "New", metadata: {}, rateLimit: null }
      const changed = { ...application, ...patch, updatedAt: NOW + 1 }
      expect(await store.updateApplication(application.id, patch, NOW + 1)).toEqual(changed)
      expect(await store.getApplication(ORG, application.id)).toEqual(changed)
      expect(await store.getApplication(ORG, "acme")).toBeNull()
      await expect(store.updateApplication("app_nobody", patch, NOW)).rejects.toMatchObject({
        code: "not_found",
      })
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
      await store.updateEndpointIfVersion(endpoint.id, { description: "x" }, NOW + 1, 1)
      await expect(
        store.updateEndpointIfVersion(endpoint.id, { description: "y" }, NOW + 1, 1),
      ).rejects.toMatchObject({ code: "conflict" })
    })

    test("applications are excluded by their endpoints", async () => {
      const { store } = await setUp()
      const make = async (uid: string, ...endpoints: Partial<Endpoint>[]) => {
        const application = sample.application({ uid, orgId: OTHER_ORG })
        await store.createApplication(application)
        for (const more of endpoints)
          await store.createEndpoint(sample.endpoint(application.id, { orgId: OTHER_ORG, ...more }))
      }
      const [play, elsewhere] = [
        { url: "https://play.example/in" },
        { url: "https://example.com/?https://play." },
      ]
      const deleted = sample.endpoint("", { orgId: OTHER_ORG })
      await make("none")
      await make("gone")
      const gone = (await store.getApplication(OTHER_ORG, "gone"))!
      await store.createEndpoint({ ...deleted, appId: gone.id })
      const filter = { endpointId: deleted.id, live: true }
      await store.deleteEndpoint(deleted.id, sample.task({ action: "cancel", filter }))
      await make("disabled", { ...elsewhere, disabled: true })
      await make("half", { ...elsewhere, disabled: true }, play)
      await make("play", play)
      await make("plain", elsewhere)
      const page = { ...newest(99), from: null }
      const found = async (filter?: ApplicationFilter) =>
        (await store.listApplications(OTHER_ORG, page, filter)).map(({ uid }) => uid!).sort()
      expect(await found()).toEqual(["disabled", "gone", "half", "none", "plain", "play"])
      expect(await found({ excludeWithoutEndpoints: true })).toEqual(["disabled", "half", "plain", "play"])
      expect(await found({ excludeAllDisabled: true })).toEqual(["gone", "half", "none", "plain", "play"])
      expect(await found({ excludeAllTo: "https://play." })).toEqual([
        "disabled",
        "gone",
        "half",
        "none",
        "plain",
      ])
      expect(
        await found({
          excludeWithoutEndpoints: true,
          excludeAllDisabled: true,
          excludeAllTo: "https://play.",
        }),
      ).toEqual(["half", "plain"])
    })

    test("endpoints are found by their ids, deleted or not", async () => {
      const { store, application, endpoint } = await setUp()
      const other = sample.endpoint(application.id)
      await store.createEndpoint(other)
      const filter = { endpointId: endpoint.id, live: true }
      await store.deleteEndpoint(endpoint.id, sample.task({ action: "cancel", filter }))
      const found = await store.getEndpoints([endpoint.id, other.id, "ep_nobody"])
      expect(found.map(({ id, url }) => [id, url]).sort()).toEqual(
        [endpoint, other].map(({ id, url }) => [id, url]).sort(),
      )
      expect(await store.getEndpoints([])).toEqual([])
    })

    test("endpoints are found by their id, and by a hold that is not over", async () => {
      const { store, application, endpoint } = await setUp({ holdUntil: NOW + 10 })
      const free = sample.endpoint(application.id)
      await store.createEndpoint(free)
      const page = { limit: 9, order: "ascending", from: null, back: false } as const
      const ids = async (filter: EndpointFilter) =>
        (await store.listEndpoints({ orgId: ORG, ...filter }, page)).map(({ id }) => id)
      expect(await ids({ endpointId: free.id })).toEqual([free.id])
      expect(await ids({ heldAfter: NOW })).toEqual([endpoint.id])
      expect(await ids({ heldAfter: NOW + 10 })).toEqual([])
      expect(await ids({ heldAfter: NOW, endpointId: free.id })).toEqual([])
    })

    test("endpoints of the relay are found over all tenants", async () => {
      const { store, add, application } = await withUrls(setUp)
      const other = sample.application({ orgId: OTHER_ORG })
      await store.createApplication(other)
      const relay = [
        await add("relay://hub"),
        await add(" Relay://hub"),
        await add("\t\nRELAY://hub-2"),
        await add("relay://hub", other),
      ]
      for (const url of ["https://relay:1/relay://hub", "relays://hub", "relay//hub", "x relay://hub"])
        await add(url)
      const gone = await add("relay://hub")
      await store.deleteEndpoint(gone, sample.task({ action: "cancel", filter: { endpointId: gone } }))
      await store.updateEndpoint(await add("relay://hub"), { url: "https://a.example" }, NOW)
      const list = listOf(store)
      const transport = "relay"
      expect(await list({ transport })).toEqual(relay)
      expect(await list({ transport }, { limit: 2, from: relay[0]! })).toEqual(relay.slice(1, 3))
      expect(await list({ transport, appId: application.id })).toEqual(relay.slice(0, 3))
      expect(await list({ transport, orgId: OTHER_ORG })).toEqual(relay.slice(3))
    })

    test("endpoints are found by their application and exact URL", async () => {
      const { store, add, application } = await withUrls(setUp)
      const other = sample.application()
      await store.createApplication(other)
      const hub = await add("relay://hub")
      const disabled = await add("relay://hub")
      await store.updateEndpoint(disabled, { disabled: true }, NOW)
      await add("relay://hub-2")
      const gone = await add("relay://hub")
      await store.deleteEndpoint(gone, sample.task({ action: "cancel", filter: { endpointId: gone } }))
      const elsewhere = await add("relay://hub", other)
      const http = await add("https://a.example/?a=1")
      const list = listOf(store)
      const appId = application.id
      expect(await list({ appId, url: "relay://hub" })).toEqual([hub, disabled])
      expect(await list({ appId, url: "relay://hub" }, { from: hub })).toEqual([disabled])
      expect(await list({ appId: other.id, url: "relay://hub" })).toEqual([elsewhere])
      expect(await list({ appId, url: "relay://HUB" })).toEqual([])
      expect(await list({ appId, url: "https://a.example/?a=1" })).toEqual([http])
      expect(await list({ appId, url: "https://a.example/?a=1", transport: "relay" })).toEqual([])
    })

    test("applications are found by their exact name, endpoints and messages of a tenant by uid and event id", async () => {
      const { store, application, send } = await setUp()
      const twin = sample.application({ name: application.name })
      const other = sample.application({ name: "Acme Ltd." })
      const foreign = sample.application({ orgId: OTHER_ORG, name: application.name })
      const deleted = sample.application({ name: application.name })
      for (const one of [twin, other, foreign, deleted]) await store.createApplication(one)
      const endpoints = [application, twin, foreign, deleted].map(({ id, orgId }) =>
        sample.endpoint(id, { uid: "main", orgId }),
      )
      for (const one of endpoints) await store.createEndpoint(one)
      const sent = []
      for (const { id, orgId } of [application, twin, foreign, deleted])
        sent.push(await send({ app: id, orgId, eventId: "order-1", receivedAt: NOW + sent.length }))
      const cancel = sample.task({ action: "cancel", filter: { appId: deleted.id, live: true } })
      await store.deleteApplication(deleted.id, cancel)

      const page: Page<string> = { limit: 9, order: "ascending", from: null, back: false }
      const ids = async (found: Promise<readonly { readonly id: string }[]>) =>
        (await found).map(({ id }) => id)
      const named = (name: string) => ids(store.listApplications(ORG, page, { name }))
      expect(await named(application.name)).toEqual([application.id, twin.id].toSorted())
      expect(await named("Acme Ltd.")).toEqual([other.id])
      expect(await named("acme ltd.")).toEqual([])
      const uids = (uid: string) => ids(store.listEndpoints({ orgId: ORG, uid }, page))
      expect(await uids("main")).toEqual([endpoints[0]!.id, endpoints[1]!.id].toSorted())
      expect(await uids("other")).toEqual([])
      const messages = await store.findMessages(ORG, "order-1", 9)
      expect(messages.map(({ id }) => id)).toEqual([sent[1]!.messageId, sent[0]!.messageId])
      expect(messages[0]).toMatchObject({ appId: twin.id, eventId: "order-1", payload: null })
      expect(await store.findMessages(ORG, "order-1", 1)).toHaveLength(1)
      expect(await store.findMessages(ORG, "order-2", 9)).toEqual([])
    })

    test("an endpoint that becomes ordered orders its waiting deliveries", async () => {
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
      await store.putPolicy({ orgId: ORG, name: "mine", policy: '{"v":1}', updatedAt: NOW })
      const endpoint = sample.endpoint(application.id, { retryName: "mine" })
      await store.createEndpoint(endpoint)
      await store.putPolicy({ orgId: ORG, name: "mine", policy: '{"v":2}', updatedAt: NOW })
      expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({
        retryPolicy: '{"v":2}',
        version: 2,
      })
      await expect(store.deletePolicyIfUnused(ORG, "mine")).rejects.toMatchObject({ code: "conflict" })
      await store.updateEndpoint(endpoint.id, { retryName: null, retryPolicy: null }, NOW)
      await store.deletePolicyIfUnused(ORG, "mine")
      expect(await store.getPolicy(ORG, "mine")).toBeNull()
    })

    test("another encryption key is refused", async () => {
      const { store } = await setUp()
      await store.bindEncryptionKey("first")
      await store.bindEncryptionKey("first")
      await expect(store.bindEncryptionKey("second")).rejects.toMatchObject({ code: "wrong_encryption_key" })
    })
  })
}

/** `add` creates an endpoint with this URL, and returns its id. */
async function withUrls(setUp: SetUp) {
  const stage = await setUp()
  const add = async (url: string, { id, orgId } = stage.application) => {
    const endpoint = sample.endpoint(id, { orgId, url })
    await stage.store.createEndpoint(endpoint)
    return endpoint.id
  }
  return { ...stage, add }
}

/** Lists endpoints by id, and returns their ids. */
function listOf(store: Store) {
  const all = { limit: 99, order: "ascending", from: null, back: false } as const
  return async (filter: EndpointFilter, page: Partial<Page<string>> = {}) =>
    (await store.listEndpoints(filter, { ...all, ...page })).map(({ id }) => id)
}
