/** The search by id, uid or exact name, over everything that a tenant has. */
import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const OTHER = "org_2rTestTestTestTestTestTestTe"

/** A tenant with one of everything. */
async function start() {
  const harness = await Harness.start()
  const { posthorn } = harness
  const { id: appId } = await posthorn.applications.create({ uid: "acme", name: "Acme Ltd. & Söhne" })
  const endpointId = await harness.endpoint({ uid: "main" }, "/hook")
  await posthorn.eventTypes.create({ name: "invoice.paid", description: "" })
  await posthorn.policies.put("gentle", { delays: [60], maxAttempts: 2 })
  const source = await posthorn.sources.create("acme", { name: "github", verification: "none" })
  await posthorn.endpoints.create("acme", { uid: "hub", url: "relay://hub", eventTypes: ["none"] })
  const messageId = await harness.send({ n: 1 }, { eventId: "order-1" })
  await harness.published("delivery.delivered", 1)
  const [delivery] = (await posthorn.deliveries.list()).data
  const task = await posthorn.dead.retryMany({})
  const ids = { appId, endpointId, sourceId: source.id, messageId, deliveryId: delivery!.id, taskId: task.id }
  const everywhere = (text: string) => posthorn.search.everywhere(text)
  const inAcme = (text: string) => posthorn.search.inApplication("acme", text)
  return { harness, posthorn, ...ids, everywhere, inAcme }
}

test("everything of a tenant is found by its id, and by the name that it was given", async () => {
  const { harness, appId, endpointId, sourceId, messageId, deliveryId, taskId, everywhere } = await start()
  const application = { kind: "application", id: appId, appId, label: "Acme Ltd. & Söhne" }
  const endpoint = {
    kind: "endpoint",
    id: endpointId,
    appId,
    label: `main (${harness.receiver.url("/hook")})`,
  }
  const message = { kind: "message", id: messageId, appId, label: "invoice.paid order-1" }
  const found = {
    [appId]: application,
    acme: application,
    "Acme Ltd. & Söhne": application,
    [endpointId]: endpoint,
    main: endpoint,
    [messageId]: message,
    "order-1": message,
    [deliveryId]: { kind: "delivery", id: deliveryId, appId, label: "invoice.paid, delivered" },
    [sourceId]: { kind: "source", id: sourceId, appId, label: "github" },
    [`${appId}.hub`]: { kind: "agent", id: "hub", appId, label: "hub" },
    "invoice.paid": { kind: "event-type", id: "invoice.paid", appId: null, label: "invoice.paid" },
    gentle: { kind: "policy", id: "gentle", appId: null, label: "gentle" },
    standard: { kind: "policy", id: "standard", appId: null, label: "standard" },
    [taskId]: { kind: "task", id: taskId, appId: null, label: "retry" },
  }
  for (const [text, one] of Object.entries(found))
    expect([text, await everywhere(text)]).toEqual([text, [one]])
  for (const text of ["Acme", "ACME", "invoice", "order", "nul\0l", "x".repeat(256), "ep_1", "%"])
    expect([text, await everywhere(text)]).toEqual([text, []])
})

test("in one application, sources and agents have names too, and nothing of another one is found", async () => {
  const { posthorn, endpointId, sourceId, messageId, deliveryId, appId, inAcme } = await start()
  const kinds = async (text: string) => (await inAcme(text)).map(({ kind, id }) => [kind, id])
  expect(await kinds("github")).toEqual([["source", sourceId]])
  expect(await kinds(sourceId)).toEqual([["source", sourceId]])
  expect((await kinds("hub")).map(([kind]) => kind)).toEqual(["endpoint", "agent"])
  expect(await kinds("main")).toEqual([["endpoint", endpointId]])
  expect(await kinds("order-1")).toEqual([["message", messageId]])
  expect(await kinds(deliveryId)).toEqual([["delivery", deliveryId]])
  for (const text of [appId, "acme", "invoice.paid", "gentle"]) expect(await kinds(text)).toEqual([])
  await posthorn.applications.create({ uid: "globex", name: "Globex" })
  for (const text of ["github", sourceId, "hub", endpointId, "main", "order-1", messageId, deliveryId])
    expect([text, await posthorn.search.inApplication("globex", text)]).toEqual([text, []])
  await expect(posthorn.search.inApplication("nobody", "main")).rejects.toMatchObject({ code: "not_found" })
})

test("a uid of many applications is found in ten, and things that were deleted are not", async () => {
  const { harness, posthorn, endpointId, appId, everywhere } = await start()
  for (let n = 0; n < 11; n++) {
    await posthorn.applications.create({ uid: `app-${n}`, name: "Twin" })
    await posthorn.endpoints.create(`app-${n}`, { uid: "main", url: harness.receiver.url("/") })
  }
  expect(await everywhere("main")).toHaveLength(10)
  const twins = await everywhere("Twin")
  expect(twins.map(({ kind, label }) => [kind, label])).toEqual(Array(10).fill(["application", "Twin"]))
  await posthorn.endpoints.delete("acme", "main")
  expect(await everywhere(endpointId)).toEqual([])
  await posthorn.applications.delete("acme")
  for (const text of [appId, "acme", "Acme Ltd. & Söhne", "order-1"])
    expect([text, await everywhere(text)]).toEqual([text, []])
})

test("another tenant finds nothing of it", async () => {
  const { posthorn, appId, endpointId, sourceId, messageId, deliveryId, taskId } = await start()
  const { search } = posthorn.tenant(OTHER)
  const names = ["acme", "Acme Ltd. & Söhne", "main", "order-1", `${appId}.hub`, "invoice.paid", "gentle"]
  for (const text of [appId, endpointId, sourceId, messageId, deliveryId, taskId, ...names])
    expect([text, await search.everywhere(text)]).toEqual([text, []])
  await expect(search.inApplication(appId, "main")).rejects.toMatchObject({ code: "not_found" })
})
