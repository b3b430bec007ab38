/** Invalid query parameters of lists are refused, not answered with an empty page. */
import { expect, test } from "vitest"
import { ApiServer } from "./support/server.ts"

const refused = (...loc: string[]) => ({ status: 422, body: { detail: [{ loc }] } })

test("an iterator that no list gave is refused", async () => {
  const server = await ApiServer.start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  for (const list of [
    "/app",
    "/app/acme/endpoint",
    "/app/acme/msg",
    "/event-type",
    "/lane",
    "/delivery",
    "/background-task",
    "/task",
  ])
    for (const iterator of ["z z", "-", "%00"])
      expect(await server.call("GET", `${list}?iterator=${iterator}`), list).toMatchObject(
        refused("query", "iterator"),
      )
  for (const list of ["/app", "/app/acme/endpoint", "/lane", "/delivery"])
    expect(await server.call("GET", `${list}?iterator=zzz`), list).toMatchObject(refused("query", "iterator"))
})

test("an endpoint's uid without its application is refused: in each it may be another", async () => {
  const server = await ApiServer.start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await server.posthorn.endpoints.create("acme", { uid: "shop", url: "https://example.com/" })
  for (const list of ["/delivery", "/dead-letter", "/dead-letter/count", "/dead-letter/group"]) {
    expect(await server.call("GET", `${list}?endpoint_id=shop`), list).toMatchObject(
      refused("query", "endpoint_id"),
    )
    expect(await server.call("GET", `${list}?endpoint_id=shop&app_id=acme`), list).toMatchObject({
      status: 200,
    })
  }
  expect(await server.call("POST", "/dead-letter/retry", { body: { endpoint_id: "shop" } })).toMatchObject(
    refused("body", "endpoint_id"),
  )
})

test("a message by its event id, together with its application: alone it is refused, and nobody's is not found", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { posthorn } = server
  for (const uid of ["acme", "globex"]) {
    await posthorn.applications.create({ uid, name: uid })
    await posthorn.endpoints.create(uid, { uid: "shop", url: "https://example.com/" })
  }
  const message = { eventType: "a", payload: {} }
  const { id } = await posthorn.send("acme", { ...message, eventId: "invoice-17" })
  await posthorn.send("acme", { ...message, eventId: "invoice-18" })
  const found = async (query: string) => {
    const { status, body } = await server.call("GET", `/delivery?${query}`)
    return status === 200 ? body.data.map((one: { msgId: string }) => one.msgId) : status
  }
  for (const name of ["invoice-17", id]) {
    expect(await found(`msg_id=${name}&app_id=acme`)).toEqual([id])
    expect(await found(`msg_id=${name}&app_id=globex`)).toBe(404)
  }
  expect(await found(`msg_id=${id}`)).toEqual([id])
  for (const list of ["/delivery", "/dead-letter", "/dead-letter/count", "/dead-letter/group"]) {
    expect(await server.call("GET", `${list}?msg_id=invoice-17`), list).toMatchObject(
      refused("query", "msg_id"),
    )
    expect(await server.call("GET", `${list}?msg_id=invoice-19&app_id=acme`), list).toMatchObject({
      status: 404,
    })
  }
  for (const action of ["retry", "discard"]) {
    const post = (body: object) => server.call("POST", `/dead-letter/${action}`, { body })
    expect(await post({ msg_id: "invoice-17" })).toMatchObject(refused("body", "msg_id"))
    expect(await post({ msg_id: "invoice-17", app_id: "acme" })).toMatchObject({ status: 202 })
  }
})

test("a day that does not exist is no time", async () => {
  const server = await ApiServer.start()
  for (const [day, status] of [
    ["2026-02-28", 200],
    ["2024-02-29", 200],
    ["2026-02-29", 422],
    ["2026-02-30", 422],
    ["2026-04-31", 422],
    ["2026-13-01", 422],
    ["2026-01-00", 422],
  ] as const)
    expect(await server.call("GET", `/dead-letter?after=${day}T00:00:00Z`), day).toMatchObject({ status })
})

test("a time may be written as Svix's clients for Rust write it", async () => {
  const server = await ApiServer.start({ options: { deliver: false } })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await server.posthorn.send("acme", { eventType: "a", payload: {} })
  const found = async (query: string) => {
    const { status, body } = await server.call("GET", `/app/acme/msg?${query}`)
    return status === 200 ? body.data.length : status
  }
  const at = (ms: number) => new Date(Date.now() + ms).toISOString().slice(0, 19).replace("T", "%20")
  const [before, after] = [at(-3_600_000), at(3_600_000)]
  expect(await found(`after=${before}%20UTC&before=${after}%20UTC`)).toBe(1)
  expect(await found(`after=${before}.123456789+UTC`)).toBe(1)
  expect(await found(`before=${before}.5%20UTC`)).toBe(0)
  for (const wrong of [`${before}%20CET`, `${before}%20utc`, `${before}`, "2026-02-30%2000:00:00%20UTC"])
    expect(await found(`after=${wrong}`), wrong).toBe(422)
})
