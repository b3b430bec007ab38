/** The same key and body: the same answer, at the same moment and after a crash. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import type { Entry, Store } from "../../src/store/store.ts"
import { TestClock } from "../support/clock.ts"
import { type ProbeControls, probeRoutes } from "./support/probe.ts"
import { ApiServer, type ApiServerOptions } from "./support/server.ts"

const HOUR_MS = 3_600_000

function start(controls: ProbeControls = {}, more: ApiServerOptions = {}) {
  return ApiServer.start({ routes: [probeRoutes(controls)], ...more })
}

const create = (server: ApiServer, name: string, key = "k-1", more = {}) =>
  server.call("POST", "/app", { body: { name }, headers: { "idempotency-key": key }, ...more })

const names = async (server: ApiServer) =>
  (await server.posthorn.applications.list()).data.map(({ name }) => name)

/** Sees every answer's entry before it is written, and may do something else. */
function overEntries(save: (entry: Entry, write: () => Promise<void>) => Promise<void>) {
  return (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        if (name !== "saveEntryIfUnchanged") return value.bind(target)
        return (entry: Entry) => {
          const write = () => value.call(target, entry)
          return entry.kind === "answer" ? save(entry, write) : write()
        }
      },
    })
}

test("a repeat gets the first answer, and creates nothing", async () => {
  const server = await start()
  const first = await create(server, "Acme")
  const again = await create(server, "Acme")
  expect([first.status, again.status]).toEqual([201, 201])
  expect(again.text).toBe(first.text)
  expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"))
  expect(await names(server)).toEqual(["Acme"])
})

test("another key, another address and another tenant are requests of their own", async () => {
  const server = await start()
  await create(server, "one")
  await create(server, "one", "k-2")
  await create(server, "one", "k-1", {})
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "other", scope: "admin" })
  const other = await create(server, "one", "k-1", { key: token })
  expect(other.status).toBe(201)
  expect(await names(server)).toEqual(["one", "one"])
  expect(
    await server.call("POST", `/app/${other.body.id}/change`, {
      key: token,
      headers: { "idempotency-key": "k-1" },
    }),
  ).toMatchObject({ status: 204 })
})

test("another body with the same key is a conflict", async () => {
  const server = await start()
  await create(server, "Acme")
  expect(await create(server, "Globex")).toMatchObject({ status: 409, body: { code: "conflict" } })
  expect(await names(server)).toEqual(["Acme"])
})

test("without a key every request is its own, and one that is too long is refused", async () => {
  const server = await start()
  for (let n = 0; n < 2; n++) await server.call("POST", "/app", { body: { name: "x" } })
  expect(await names(server)).toHaveLength(2)
  expect(await create(server, "x", "k".repeat(257))).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["header", "idempotency-key"] }] },
  })
})

test("repeats at the same moment wait for the first, and get its answer", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  let runs = 0
  const server = await start({
    created: () => {
      runs++
      reach()
      return opened
    },
  })
  const first = create(server, "Acme")
  await reached
  const others = Array.from({ length: 5 }, () => create(server, "Acme"))
  const conflicting = create(server, "Globex")
  open()
  const { text } = await first
  for (const answer of await Promise.all(others)) expect(answer).toMatchObject({ status: 201, text })
  expect(await conflicting).toMatchObject({ status: 409 })
  expect(runs).toBe(1)
  expect(await names(server)).toEqual(["Acme"])
})

test("an answer that is no success is not kept", async () => {
  const server = await start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const post = (uid: string) =>
    server.call("POST", "/app", { body: { name: "x", uid }, headers: { "idempotency-key": "k-1" } })
  expect(await post("acme")).toMatchObject({ status: 409 })
  expect(await post("globex")).toMatchObject({ status: 201 })
})

test("a fault after the work was done: the repeat finds what was made", async () => {
  let faults = 1
  const server = await start({
    created: () => {
      if (faults-- > 0) throw new Error("a fault of our own")
    },
  })
  expect(await create(server, "Acme")).toMatchObject({ status: 500 })
  const [made] = (await server.posthorn.applications.list()).data
  expect(await create(server, "Globex")).toMatchObject({ status: 409 })
  expect(await create(server, "Acme")).toMatchObject({ status: 201, body: { id: made!.id } })
  expect(await names(server)).toEqual(["Acme"])
})

test("after twelve hours the key is free again", async () => {
  const clock = new TestClock()
  const server = await start({}, { clock, options: { deliver: false } })
  const first = await create(server, "Acme")
  clock.advance(12 * HOUR_MS - 1)
  expect((await create(server, "Acme")).text).toBe(first.text)
  clock.advance(1)
  expect((await create(server, "Acme")).text).not.toBe(first.text)
  expect(await names(server)).toHaveLength(2)
})

/** Says when somebody begins to wait. */
class WaitingClock extends TestClock {
  #waiting = Promise.withResolvers<void>()

  override setTimer(delayMs: number, run: () => void) {
    this.#waiting.resolve()
    return super.setTimer(delayMs, run)
  }

  /** Lets time pass in steps, each when somebody waits for it. */
  async pass(stepMs: number, steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      await this.#waiting.promise
      this.#waiting = Promise.withResolvers<void>()
      this.advance(stepMs)
    }
  }
}

test("a request that another process has begun is waited for, and taken over with the same ids when that process has died", async () => {
  const clock = new WaitingClock()
  const server = await start({}, { clock, options: { deliver: false } })
  const first = await create(server, "Acme")
  const { store } = server.posthorn.context
  const page = { limit: 1, order: "ascending", from: null, back: false } as const
  const [answered] = await store.listEntries("answer", DEFAULT_ORG, page, clock.now())
  // As it was when the process had created the application and not answered yet.
  const begun = JSON.stringify({ ...JSON.parse(answered!.body), answer: null })
  await store.saveEntryIfUnchanged({
    ...answered!,
    body: begun,
    version: answered!.version + 1,
    updatedAt: clock.now(),
  })
  const again = create(server, "Acme")
  await clock.pass(100, 50)
  expect((await again).text).toBe(first.text)
  expect(await names(server)).toEqual(["Acme"])
})

/** As it is after a crash between the work and its answer: somebody began it, and nobody knows more. */
async function forgetAnswer({ posthorn }: ApiServer): Promise<void> {
  const { store, clock } = posthorn.context
  const page = { limit: 2, order: "ascending", from: null, back: false } as const
  const [kept, ...others] = await store.listEntries("answer", DEFAULT_ORG, page, clock.now())
  expect(others).toEqual([])
  const body = JSON.stringify({ ...JSON.parse(kept!.body), answer: null, broken: true })
  await store.saveEntryIfUnchanged({ ...kept!, body, version: kept!.version + 1 })
}

const repeatable = { headers: { "idempotency-key": "k-1" } }

/** With one endpoint, and nothing that goes out. */
async function startWhole() {
  const server = await ApiServer.start({ options: { deliver: false } })
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { uid: "hook", url: "https://93.184.216.34/" })
  const sent = async () => (await posthorn.messages.list("acme")).data
  return { server, posthorn, sent }
}

test("an example that was sent and not answered for is not sent again, whatever happened since", async () => {
  const { server, posthorn, sent } = await startWhole()
  const type = { name: "invoice.paid", description: "", schemas: { 1: { examples: [{ invoice: 17 }] } } }
  await posthorn.eventTypes.create(type)
  const body = { eventType: type.name }
  const send = () => server.call("POST", "/app/acme/endpoint/hook/send-example", { ...repeatable, body })
  const first = await send()
  await forgetAnswer(server)
  expect(await send()).toMatchObject({ status: 200, body: first.body })
  await forgetAnswer(server)
  await posthorn.endpoints.update("acme", "hook", { disabled: true })
  expect(await send()).toMatchObject({ status: 200, body: first.body })
  await forgetAnswer(server)
  await posthorn.eventTypes.delete(type.name, { expunge: true })
  expect(await send()).toMatchObject({ status: 404 })
  await posthorn.eventTypes.create(type)
  expect(await send()).toMatchObject({ status: 200, body: first.body })
  expect(await sent()).toHaveLength(1)
})

test("a delivery that was cancelled and not answered for is cancelled; one that somebody else cancelled is not", async () => {
  const { server, posthorn } = await startWhole()
  await posthorn.send("acme", { eventType: "a", payload: {} })
  const [delivery] = (await posthorn.deliveries.list()).data
  const cancel = (options = {}) => server.call("POST", `/delivery/${delivery!.id}/cancel`, options)
  const first = await cancel(repeatable)
  expect(first).toMatchObject({ status: 200, body: { status: "dead", deadReason: "cancelled" } })
  await forgetAnswer(server)
  expect(await cancel(repeatable)).toMatchObject({ status: 200, body: first.body })
  expect(await cancel()).toMatchObject({ status: 409 })
  expect(await cancel({ headers: { "idempotency-key": "k-2" } })).toMatchObject({ status: 409 })
})

test("when the answer cannot be kept the work is answered for all the same", async () => {
  let writes = 0
  const wrapStore = overEntries(async (_entry, write) => {
    if (++writes === 2) throw new Error("the disk is gone for a moment")
    return write()
  })
  const server = await start({}, { wrapStore })
  expect(await create(server, "Acme")).toMatchObject({ status: 201 })
})

test("answers are sealed in the store", async () => {
  const bodies: string[] = []
  const wrapStore = overEntries((entry, write) => {
    bodies.push(entry.body)
    return write()
  })
  const server = await start({}, { wrapStore })
  const { body } = await create(server, "a-name-that-would-be-found")
  expect(bodies).toHaveLength(2)
  expect(bodies.join()).not.toContain("a-name-that-would-be-found")
  expect(bodies.join()).not.toContain(body.id)
})
