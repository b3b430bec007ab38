/** Agents over HTTP: of an application, and of all. */
import { expect, test } from "vitest"
import { TestAgent } from "../support/test-agent.ts"
import { ApiServer } from "./support/server.ts"

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\S+Z$/)

async function start() {
  const server = await ApiServer.start()
  const { posthorn } = server
  const ids: { [app: string]: string } = {}
  for (const uid of ["acme", "other"]) {
    ids[uid] = (await posthorn.applications.create({ uid, name: uid })).id
    await posthorn.endpoints.create(uid, { url: "relay://hub" })
  }
  const get = async (path: string, key = server.key) => server.call("GET", path, { key })
  return { server, posthorn, ids, get }
}

test("an agent has its state, its version and its endpoints", async () => {
  const { posthorn, ids, get } = await start()
  const endpoints = (await posthorn.endpoints.list("acme")).data.map(({ id }) => id)
  const common = { name: "hub", appId: ids.acme, inFlight: 0, endpoints }
  const absent = { connected: false, version: null, connectedSince: null, lastSeenAt: null }
  expect(await get("/app/acme/agent/hub")).toMatchObject({ status: 200, body: { ...common, ...absent } })
  await TestAgent.joinAt(posthorn, { version: "my-agent/7" })
  const present = { connected: true, version: "my-agent/7", connectedSince: TIME, lastSeenAt: TIME }
  const { body } = await get("/app/acme/agent")
  expect(body).toEqual({
    data: [{ ...common, ...present }],
    iterator: `${ids.acme}.hub`,
    prevIterator: `-${ids.acme}.hub`,
    done: true,
  })
  for (const name of ["nobody", "HUB", "a.b"])
    expect(await get(`/app/acme/agent/${name}`)).toMatchObject({ status: 404 })
})

test("all agents of the organization, in pages; an application's key gets its own", async () => {
  const { posthorn, ids, get } = await start()
  const first = await get("/agent?limit=1")
  expect(first.body).toMatchObject({ data: [{ appId: ids.acme }], done: false })
  const rest = await get(`/agent?limit=1&iterator=${first.body.iterator}`)
  expect(rest.body).toMatchObject({ data: [{ appId: ids.other }], done: true })
  const { token } = await posthorn.keys.create({ name: "portal", scope: "application", appId: "other" })
  expect((await get("/app/other/agent", token)).body.data).toMatchObject([{ appId: ids.other }])
  expect(await get("/app/acme/agent", token)).toMatchObject({ status: 404 })
  expect(await get("/agent", token)).toMatchObject({ status: 403 })
  expect(await get("/agent?iterator=nonsense!")).toMatchObject({ status: 422 })
})
