import { expect, test } from "vitest"
import { Harness } from "../support/harness.ts"

const TEN = Array.from({ length: 10 }, (_, i) => i)

/** Ten of them at once, none of which may be refused. */
function tenTimes<T>(work: (i: number) => Promise<T>): Promise<T[]> {
  return Promise.all(TEN.map(work))
}

test("ten concurrent puts of an event type: one creates it, the others replace it", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const put = () => tenTimes((i) => eventTypes.put("a", { description: String(i) }))
  expect((await put()).filter(({ created }) => created)).toHaveLength(1)
  expect((await put()).filter(({ created }) => created)).toHaveLength(0)
  expect(TEN.map(String)).toContain((await eventTypes.get("a")).description)
})

test("ten concurrent changes to an event type are all in it, and it can be archived meanwhile", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  await eventTypes.create({ name: "a", description: "" })
  const changes = [{ description: "A" }, { deprecated: true }, { groupName: "g" }, { featureFlags: ["f"] }]
  await tenTimes(async (i) => {
    if (i === 9) await eventTypes.delete("a")
    else await eventTypes.update("a", changes[i % changes.length]!)
  })
  expect(await eventTypes.get("a")).toMatchObject({ ...Object.assign({}, ...changes), archived: true })
})

test("event types that are imported ten times at once are written once each", async () => {
  const { posthorn } = await Harness.start()
  const { eventTypes } = posthorn
  const types = ["a", "b", "c"].map((name) => ({ name, description: name }))
  const written = await tenTimes(() => eventTypes.putAll(types))
  expect(written.flat().sort()).toEqual(["a", "b", "c"])
  const news = await tenTimes((i) =>
    eventTypes.putAll(types.map((type) => ({ ...type, groupName: `g${i}` }))),
  )
  expect(news).toEqual(TEN.map(() => ["a", "b", "c"]))
})

test("of ten changes to an endpoint at once none is lost, also where secrets are sealed", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const { endpoints } = harness.posthorn
  await tenTimes(async (i) => {
    if (i % 2 === 0) await endpoints.update("acme", id, { auth: { type: "bearer", token: "t" } })
    else await endpoints.rotateSecret("acme", id)
  })
  await harness.send()
  const [request] = await harness.receiver.arrived("/", 1)
  expect(request!.headers.authorization).toBe("Bearer t")
  // The first secret, and five that came after it.
  expect(String(request!.headers["webhook-signature"]).split(" ")).toHaveLength(6)
})

test("a new secret and the fields changed with it are written together, or not at all", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  await harness.endpoint({ uid: "taken" })
  const { endpoints } = harness.posthorn
  const secret = `whsec_${"A".repeat(32)}`
  const { key } = await endpoints.secret("acme", id)
  await expect(endpoints.update("acme", id, { secret, uid: "taken" })).rejects.toMatchObject({ field: "uid" })
  expect(await endpoints.secret("acme", id)).toMatchObject({ key })
  await expect(endpoints.update("acme", id, { secret: "short", description: "d" })).rejects.toMatchObject({
    field: "secret",
  })
  expect((await endpoints.get("acme", id)).description).toBe("")
  await tenTimes((i) => endpoints.update("acme", id, { secret, headers: { "x-by": String(i) } }))
  expect(await endpoints.secret("acme", id)).toMatchObject({ key: secret })
  await harness.send()
  const requests = await harness.receiver.arrived("/", 2)
  const signatures = requests.map(({ headers }) => String(headers["webhook-signature"]).split(" "))
  expect(signatures.map(({ length }) => length)).toEqual([1, 1])
})
