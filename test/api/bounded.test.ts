/** Lists, counts and groups with `bounded=true`: how far they searched, and how a search goes on. */
import { expect, test } from "vitest"
import { ApiServer } from "./support/server.ts"

/** More messages than a search reads; the first and the last two have tags. */
async function start() {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "shop", url: "https://example.com/" })
  const message = { eventType: "a", payload: {} }
  await posthorn.send("acme", { ...message, tags: ["first"] })
  for (let i = 0; i < 10; i++) await posthorn.sendBatch("acme", Array(1000).fill(message))
  for (let i = 0; i < 2; i++) await posthorn.send("acme", { ...message, tags: ["last"] })
  const get = async (path: string) => (await server.call("GET", path)).body
  return { server, get }
}

test("a bounded list says how far it searched, and its iterator continues from there", async () => {
  const { server, get } = await start()
  for (const list of ["/app/acme/msg", "/delivery", "/app/acme/endpoint/shop/msg"]) {
    const found = await get(`${list}?bounded=true&tag=last&limit=1`)
    expect(found, list).toMatchObject({ data: [expect.anything()], done: false, searchedTo: null })
    const far = await get(`${list}?bounded=true&tag=first`)
    expect(far, list).toMatchObject({ data: [], done: false, searchedTo: expect.stringContaining("T") })
    const next = await get(`${list}?bounded=true&tag=first&iterator=${far.iterator}`)
    expect(next, list).toMatchObject({ data: [expect.anything()], done: true, searchedTo: null })
    const back = await get(`${list}?bounded=true&tag=last&iterator=${far.prevIterator}`)
    expect(back.data, list).toHaveLength(2)
    const all = await get(`${list}?tag=first`)
    expect(all.data, list).toHaveLength(1)
    expect(all, list).not.toHaveProperty("searchedTo")
  }
  const wrong = await server.call("GET", "/delivery?bounded=maybe")
  expect(wrong).toMatchObject({ status: 422, body: { detail: [{ loc: ["query", "bounded"] }] } })
})

test("bounded counts and groups say how far they came", async () => {
  const { server, get } = await start()
  const time = expect.stringContaining("T")
  expect(await get("/stats/delivery?bounded=true")).toMatchObject({ pending: 10_000, searchedTo: time })
  expect(await get("/stats/delivery")).toMatchObject({ pending: 10_003 })
  const ofShop = await get("/stats/delivery?bounded=true&app_id=acme&endpoint_id=shop")
  expect(ofShop).toMatchObject({ pending: 10_000, searchedTo: time })
  expect(await get("/delivery/count-waiting?bounded=true")).toEqual({ count: 10_000, searchedTo: time })
  expect(await get("/delivery/count-waiting")).toEqual({ count: 10_003 })
  expect(await get("/dead-letter/count?bounded=true")).toEqual({ count: 0, searchedTo: null })
  expect(await get("/dead-letter/group?bounded=true")).toEqual({ data: [], searchedTo: null })
  const none = { data: [], done: true, searchedTo: null }
  expect(await get("/dead-letter?bounded=true&dead_reason=gone")).toMatchObject(none)
  const lane = { waiting: 10_000, retrying: 0, isLowerBound: true }
  expect(await get("/lane?bounded=true")).toMatchObject({ data: [lane] })
  expect(await get("/lane")).toMatchObject({ data: [{ waiting: 10_003, isLowerBound: false }] })
  await server.call("PATCH", "/app/acme/endpoint/shop", { body: { disabled: true } })
  const preview = await get("/app/acme/endpoint/shop/enable")
  expect(preview).toMatchObject({ held: 10_000, heldIsLowerBound: true })
  for (const attempts of ["/app/acme/attempt", "/app/acme/attempt/endpoint/shop"])
    for (const query of ["status_code_class=500", "status=1"])
      expect(await get(`${attempts}?bounded=true&${query}`), attempts).toMatchObject(none)
})
