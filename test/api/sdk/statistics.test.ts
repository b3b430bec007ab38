/** Svix's client and the figures of a tenant. */
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../../support/receiver.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const URL = "https://example.com/hook"
const all = { since: new Date(0), until: new Date("2100-01-01") }

async function start() {
  const server = await ApiServer.start({ options: { deliver: false } })
  const svix = svixFor(server)
  const apps: { [uid: string]: string } = {}
  for (const uid of ["acme", "globex", "idle"]) {
    apps[uid] = (await svix.application.create({ name: uid, uid })).id
  }
  await svix.endpoint.create("acme", { url: URL, eventTypes: ["b", "a"] })
  await svix.endpoint.create("acme", { url: URL, eventTypes: ["b", "c"], disabled: true })
  await svix.endpoint.create("globex", { url: URL })
  await svix.endpoint.create("globex", { url: URL, eventTypes: ["a"] })
  const send = (app: string, eventType: string) => svix.message.create(app, { eventType, payload: {} })
  await send("acme", "a")
  await send("acme", "c")
  await send("globex", "a")
  return { server, svix, apps }
}

test("statistics say what each application sent, and to how many endpoints", async () => {
  const { svix, apps } = await start()
  const started = await svix.statistics.aggregateAppStats(all)
  expect(started).toMatchObject({ task: "application.stats", status: "finished", unresolvedAppIds: [] })
  const { data } = await svix.backgroundTask.get(started.id)
  const acme = { appId: apps.acme, appUid: "acme", messageDestinations: 1, messages: 2 }
  const globex = { appId: apps.globex, appUid: "globex", messageDestinations: 2, messages: 1 }
  // Applications are in the order in which they were made.
  expect(data.appStats).toEqual([acme, globex])
})

test("of those that are named, by id or uid, also what sent nothing; and of a time", async () => {
  const { svix, apps } = await start()
  const appIds = ["idle", "nobody", apps.acme!, "acme"]
  const started = await svix.statistics.aggregateAppStats({ ...all, appIds })
  expect(started.unresolvedAppIds).toEqual(["nobody"])
  expect((await svix.backgroundTask.get(started.id)).data.appStats).toMatchObject([
    { appUid: "idle", messageDestinations: 0, messages: 0 },
    { appUid: "acme", messageDestinations: 1 },
  ])
  const past = await svix.statistics.aggregateAppStats({ since: new Date(0), until: new Date(1000) })
  expect((await svix.backgroundTask.get(past.id)).data.appStats).toEqual([])
})

test("names that are all nobody's, and a time that ends before it begins, are refused", async () => {
  const { svix } = await start()
  const ask = (more: object) => refusal(svix.statistics.aggregateAppStats({ ...all, ...more }))
  expect(await ask({ appIds: ["nobody"] })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", "appIds"] }] },
  })
  expect(await ask({ until: new Date(-1) })).toMatchObject({ status: 422 })
})

test("which event types each application asks for", async () => {
  const { svix, apps } = await start()
  const started = await svix.statistics.aggregateEventTypes()
  expect(started).toMatchObject({ task: "event-type.aggregate", status: "finished" })
  const { data } = await svix.backgroundTask.get(started.id)
  const rows = new Map(data.event_types.map((row: { appId: string }) => [row.appId, row]))
  expect(rows.get(apps.acme)).toEqual({
    appId: apps.acme,
    explicitlySubscribedEventTypes: ["a", "b", "c"],
    hasCatchAllEndpoint: false,
  })
  expect(rows.get(apps.globex)).toMatchObject({
    explicitlySubscribedEventTypes: ["a"],
    hasCatchAllEndpoint: true,
  })
})

test("how many endpoints and active applications there are", async () => {
  const { server, svix } = await start()
  const active = async (query = "") =>
    (await server.call("GET", `/app/stats/count-active${query}`)).body.count
  expect((await server.call("GET", "/stats/endpoint/count")).body).toEqual({ active: 3, disabled: 1 })
  expect(await active()).toBe(2)
  await svix.endpoint.create("idle", { url: URL, disabled: true })
  expect(await active()).toBe(2)
  expect(await active("?exclude_disabled=false")).toBe(3)
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "x", scope: "admin" })
  const other = await server.call("GET", "/stats/endpoint/count", { key: token })
  expect(other.body).toEqual({ active: 0, disabled: 0 })
})

test("that figures are ready is told by operational webhook, too", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const svix = svixFor(await ApiServer.start())
  await svix.operationalWebhook.endpoint.create({ url: receiver.url("/operations") })
  const { id } = await svix.statistics.aggregateEventTypes()
  const [told] = await receiver.arrived("/operations", 1)
  expect(JSON.parse(`${told!.body}`)).toEqual({
    type: "background_task.finished",
    data: { taskId: id, task: "event-type.aggregate", status: "finished" },
  })
})
