/** `GET /search`. */
import { expect, onTestFinished, test, vi } from "vitest"
import { Receiver } from "../support/receiver.ts"
import { ApiServer } from "./support/server.ts"

async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const { posthorn } = server
  const ids: { [uid: string]: string } = {}
  for (const uid of ["acme", "globex"]) {
    await posthorn.applications.create({ uid, name: `${uid} Inc.` })
    await posthorn.endpoints.create(uid, {
      ...{ uid: "main", url: receiver.url("/main"), retry: { delays: [1], maxAttempts: 1 } },
    })
    ids[uid] = (await posthorn.messages.send(uid, { eventType: "a", payload: {}, eventId: `${uid}-1` })).id
  }
  const find = async (query: string, key = server.key) => {
    const { status, body } = await server.call("GET", `/search?${query}`, { key })
    return status === 200 ? body.data.map(({ kind, id }: { kind: string; id: string }) => [kind, id]) : status
  }
  return { server, posthorn, receiver, ids, find }
}

test("a key of the organization searches everywhere, or in one application", async () => {
  const { server, find, ids } = await start()
  expect((await server.call("GET", "/search?q=%20acme%20Inc.%20")).body).toEqual({
    data: [{ kind: "application", id: expect.any(String), appId: expect.any(String), label: "acme Inc." }],
  })
  expect(await find("q=main")).toHaveLength(2)
  expect(await find("q=main&app_id=acme")).toHaveLength(1)
  expect(await find("q=globex-1")).toEqual([["message", ids.globex]])
  expect(await find("q=globex-1&app_id=acme")).toEqual([])
  expect(await find("q=acme&app_id=nobody")).toBe(404)
  for (const query of ["", "q=", `q=${"x".repeat(257)}`, "q=a&color=red"]) expect(await find(query)).toBe(422)
  for (const text of ["%20", "%00", "a%00b", "%F0%9F%93%AF", "%27%3B--"])
    expect(await find(`q=${text}`)).toEqual([])
})

test("a key of one application finds only what that application has, and no deliveries", async () => {
  const { posthorn, find, ids } = await start()
  const { token } = await posthorn.keys.create({
    ...{ name: "portal", scope: "application", appId: "acme", capabilities: ["ViewBase"] },
  })
  expect(await find("q=main", token)).toHaveLength(1)
  expect(await find("q=main&app_id=acme", token)).toHaveLength(1)
  expect(await find("q=acme-1", token)).toEqual([["message", ids.acme]])
  expect(await find(`q=${ids.globex}`, token)).toEqual([])
  expect(await find("q=globex-1", token)).toEqual([])
  expect(await find("q=main&app_id=globex", token)).toBe(404)
  const [delivery] = (await posthorn.deliveries.list({ app: "acme" })).data
  expect(await find(`q=${delivery!.id}`)).toEqual([["delivery", delivery!.id]])
  expect(await find(`q=${delivery!.id}`, token)).toEqual([])
})

test("an alert is found by an operator", async () => {
  const { server, posthorn, receiver, find } = await start()
  receiver.always("/main", 400)
  await server.call("PUT", "/alert-rule/dead-letters-count", { body: { count: 1 } })
  await posthorn.send("acme", { eventType: "a", payload: {} })
  await vi.waitUntil(async () => (await posthorn.dead.list()).data.length > 0, 10_000)
  await posthorn.monitor!.runOnce()
  const [alert] = (await server.call("GET", "/alert")).body.data
  expect(await find(`q=${alert.id}`)).toEqual([["alert", alert.id]])
  const { token } = await posthorn
    .tenant("org_2rTestTestTestTestTestTestTe")
    .keys.create({ name: "other", scope: "admin" })
  expect(await find(`q=${alert.id}`, token)).toEqual([])
  expect(await find(`q=alert_${"a".repeat(27)}`)).toEqual([])
})
