/** Svix's client and our applications. */
import { Ordering } from "svix"
import { expect, test } from "vitest"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

test("an application is created, read, replaced, changed and deleted", async () => {
  const svix = svixFor(await ApiServer.start())
  const made = await svix.application.create({
    name: "Acme",
    uid: "acme",
    throttleRate: 7,
    metadata: { a: "1" },
  })
  expect(made).toMatchObject({ name: "Acme", uid: "acme", throttleRate: 7, metadata: { a: "1" } })
  expect(made.id).toMatch(/^app_[A-Za-z0-9]{27}$/)
  expect(made.createdAt).toBeInstanceOf(Date)
  expect(await svix.application.get("acme")).toEqual(made)
  expect(await svix.application.get(made.id)).toEqual(made)
  const patched = await svix.application.patch("acme", { name: "Acme & Sons", throttleRate: null })
  expect(patched).toMatchObject({ name: "Acme & Sons", throttleRate: null, metadata: { a: "1" } })
  const replaced = await svix.application.upsert("acme", { name: "New", uid: "new" })
  expect(replaced).toMatchObject({ id: made.id, name: "New", uid: "new", metadata: {} })
  await svix.application.delete("new")
  expect(await refusal(svix.application.get("new"))).toMatchObject({
    status: 404,
    body: { code: "not_found", detail: expect.stringContaining("new") },
  })
})

test("replacing one that is not there creates it, and a uid that is taken is a conflict", async () => {
  const server = await ApiServer.start()
  const svix = svixFor(server)
  const put = await server.call("PUT", "/app/nobody", { body: { name: "Somebody", uid: "somebody" } })
  expect([put.status, put.body.uid]).toEqual([201, "somebody"])
  expect(await refusal(svix.application.create({ name: "Again", uid: "somebody" }))).toMatchObject({
    status: 409,
    body: { code: "conflict" },
  })
  const same = await svix.application.getOrCreate({ name: "Again", uid: "somebody" })
  expect(same).toMatchObject({ id: put.body.id, name: "Somebody" })
})

test("puts at the same moment make one of it", async () => {
  const server = await ApiServer.start()
  const put = () => server.call("PUT", "/app/acme", { body: { name: "Acme", uid: "acme" } })
  const all = await Promise.all(Array.from({ length: 8 }, put))
  expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201])
  expect(new Set(all.map(({ body }) => body.id)).size).toBe(1)
})

test("lists go forward and back, in both orders", async () => {
  const svix = svixFor(await ApiServer.start())
  for (const name of ["a", "b", "c", "d", "e"]) await svix.application.create({ name, uid: name })
  const names = (list: { data: { name: string }[] }) => list.data.map(({ name }) => name)
  const first = await svix.application.list({ limit: 2 })
  const second = await svix.application.list({ limit: 2, iterator: first.iterator })
  const third = await svix.application.list({ limit: 2, iterator: second.iterator })
  const order = [...names(first), ...names(second), ...names(third)]
  expect([...order].sort()).toEqual(["a", "b", "c", "d", "e"])
  expect([first.done, second.done, third.done]).toEqual([false, false, true])
  const back = await svix.application.list({ limit: 2, iterator: third.prevIterator! })
  expect(names(back)).toEqual(names(second))
  expect(names(await svix.application.list({ limit: 2, iterator: second.prevIterator! }))).toEqual(
    names(first),
  )
  const other = await svix.application.list({ order: Ordering.Descending })
  expect(names(other)).toEqual([...order].reverse())
  expect(await refusal(svix.application.list({ limit: 251 }))).toMatchObject({ status: 422 })
  expect(await refusal(svix.application.list({ iterator: "§" }))).toMatchObject({ status: 422 })
})

test("a list leaves applications out by their endpoints", async () => {
  const svix = svixFor(await ApiServer.start())
  const make = async (uid: string, ...endpoints: { url: string; disabled?: boolean }[]) => {
    await svix.application.create({ name: uid, uid })
    for (const endpoint of endpoints) await svix.endpoint.create(uid, endpoint)
  }
  await make("none")
  await make("disabled", { url: "https://example.com/", disabled: true })
  await make("play", { url: "https://play.svix.com/in/x/" })
  await make("plain", { url: "https://example.com/" })
  const found = async (options: object) =>
    (await svix.application.list(options)).data.map(({ uid }) => uid).sort()
  expect(await found({ excludeAppsWithNoEndpoints: true })).toEqual(["disabled", "plain", "play"])
  expect(await found({ excludeAppsWithDisabledEndpoints: true })).toEqual(["none", "plain", "play"])
  expect(await found({ excludeAppsWithSvixPlayEndpoints: true })).toEqual(["disabled", "none", "plain"])
  expect(await found({ excludeAppsWithSvixPlayEndpoints: false })).toHaveLength(4)
})
