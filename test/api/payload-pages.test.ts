/** Lists with large or unusual payloads: a page ends early, and a payload is shown as it was sent. */
import { expect, onTestFinished, test } from "vitest"
import type { Message, Store } from "../../src/store/store.ts"
import { Receiver } from "../support/receiver.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

const COUNT = 6

async function start(more: ApiServerOptions = {}) {
  const server = await ApiServer.start({ options: { deliver: false }, ...more })
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "shop", url: "https://example.com/" })
  const get = async (path: string) => {
    const { status, body } = await server.call("GET", path)
    expect(status, path).toBe(200)
    return body
  }
  return { server, posthorn, get, call: server.call.bind(server) }
}

test("a page ends before its payloads exceed 4 MiB, and iterators reach every message in both directions", async () => {
  const { posthorn, get } = await start()
  const sent: string[] = []
  for (let i = 0; i < COUNT; i++) {
    const payload = { i, filler: "x".repeat(900_000) }
    sent.unshift((await posthorn.send("acme", { eventType: "a", payload })).id)
  }
  for (const list of ["/app/acme/msg", "/app/acme/endpoint/shop/msg"]) {
    const first = await get(list)
    expect(first, list).toMatchObject({ done: false })
    const second = await get(`${list}?iterator=${first.iterator}`)
    expect(second, list).toMatchObject({ done: true })
    const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id)
    expect([ids(first), ids(second)], list).toEqual([sent.slice(0, 4), sent.slice(4)])
    const last = await get(`${list}?limit=1&iterator=${second.iterator}`)
    expect(last.data, list).toEqual([])
    const back = await get(
      `${list}?iterator=-${(await get(`${list}?limit=250&with_content=false`)).iterator}`,
    )
    expect(ids(back), list).toEqual(sent.slice(1, 5))
    const all = await get(`${list}?with_content=false`)
    expect(ids(all), list).toEqual(sent)
  }
})

/** Counts the bytes of the payloads that were read from the store. */
function countingStore() {
  const read = { bytes: 0 }
  const wrapStore = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        if (name !== "listMessages" && name !== "getMessages") return value.bind(target)
        return async (...args: unknown[]) => {
          const found: Message[] = await value.apply(target, args)
          for (const { payload } of found) read.bytes += payload?.byteLength ?? 0
          return found
        }
      },
    })
  return { read, wrapStore }
}

test("a page reads no payload that it does not show", async () => {
  const { read, wrapStore } = countingStore()
  const { server, call } = await start({ wrapStore })
  for (let i = 0; i < COUNT; i++)
    await server.posthorn.send("acme", { eventType: "a", payload: { i, filler: "x".repeat(900_000) } })
  for (const list of ["/app/acme/msg", "/app/acme/endpoint/shop/msg"]) {
    read.bytes = 0
    const { text } = await call("GET", `${list}?limit=250`)
    expect(read.bytes, list).toBeGreaterThan(3_600_000)
    expect(read.bytes, list).toBeLessThan(text.length)
  }
})

test("a page of attempts ends before its responses exceed 4 MiB, and iterators reach every attempt", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  receiver.always("/", (_request, response) => response.end("x".repeat(65_536)))
  const server = await ApiServer.start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await server.posthorn.endpoints.create("acme", { uid: "shop", url: receiver.url("/") })
  await server.posthorn.messages.sendBatch("acme", Array(70).fill({ eventType: "a", payload: {} }))
  const ids = async (list: string) => {
    const { body } = await server.call("GET", list)
    return { ...body, ids: body.data.map(({ id }: { id: string }) => id) }
  }
  for (const list of ["/app/acme/attempt", "/app/acme/attempt/endpoint/shop"]) {
    const all = () => ids(`${list}?limit=250&with_content=false`)
    await expect.poll(async () => (await all()).ids.length, { timeout: 20_000 }).toBe(70)
    const [{ ids: made }, first] = [await all(), await ids(`${list}?limit=250`)]
    expect(first, list).toMatchObject({ ids: made.slice(0, 64), done: false })
    const second = await ids(`${list}?limit=250&iterator=${first.iterator}`)
    expect(second, list).toMatchObject({ ids: made.slice(64), done: true })
    const back = await ids(`${list}?limit=250&bounded=true&iterator=-${second.iterator}`)
    expect(back, list).toMatchObject({ ids: made.slice(5, 69), done: false, searchedTo: null })
  }
})

test("a payload above the limit of a page is alone on its page", async () => {
  const server = await ApiServer.start({ options: { deliver: false, maxPayloadBytes: 6_000_000 } })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  for (let i = 0; i < 2; i++)
    await server.posthorn.send("acme", { eventType: "a", payload: { i, filler: "x".repeat(5_000_000) } })
  const { body } = await server.call("GET", "/app/acme/msg")
  expect(body).toMatchObject({ data: [{ payload: { i: 1 } }], done: false })
})

test("a payload is in each answer as it was sent: its numbers, spaces and depth", async () => {
  const { call } = await start()
  const deep = `${"[".repeat(100)}${"]".repeat(100)}`
  const texts = ['{ "n": 12345678901234567890, "x": 1.50, "z": -0 }', deep, '{"same":1,"same":2}']
  for (const text of texts) {
    const one = `{"eventType":"a","payload":${text}}`
    const sent = await call("POST", "/app/acme/msg", { raw: one })
    expect(sent.text).toContain(`"payload":${text},`)
    const batch = await call("POST", "/app/acme/msg/batch", { raw: `{"messages":[${one}]}` })
    expect(batch.text).toContain(`"payload":${text},`)
    expect((await call("GET", `/app/acme/msg/${sent.body.id}`)).text).toContain(`"payload":${text},`)
  }
  for (const list of ["/app/acme/msg", "/app/acme/endpoint/shop/msg"]) {
    const { text } = await call("GET", list)
    const each = (one: string) => text.split(`"payload":${one},`).length - 1
    expect(texts.map(each), list).toEqual([2, 2, 2])
  }
})
