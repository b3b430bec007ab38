/** Keys over HTTP: made once, shown once, revoked at once. */
import { expect, test, vi } from "vitest"
import { TestClock } from "../../support/clock.ts"
import { ApiServer } from "../support/server.ts"

test("a key is created, opens what it is for, is listed without its token, and is revoked", async () => {
  const clock = new TestClock()
  const server = await ApiServer.start({ clock })
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const expiresAt = new Date(clock.now() + 3_600_000).toISOString()
  const made = await server.call("POST", "/key", {
    body: { name: "worker", scope: "application", appId: "acme", featureFlags: ["beta"], expiresAt },
  })
  expect(made).toMatchObject({
    status: 201,
    body: { name: "worker", scope: "application", capabilities: null, featureFlags: ["beta"], expiresAt },
  })
  const { id, token, ...shown } = made.body
  expect(token).toMatch(new RegExp(`^ph_${id}_`))
  expect((await server.call("GET", "/app/acme", { key: token })).status).toBe(200)
  // That it was used is noted behind the answer.
  const read = await vi.waitFor(async () => {
    const read = await server.call("GET", `/key/${id}`)
    expect(read.body).toMatchObject({ ...shown, lastUsedAt: expect.any(String) })
    return read
  })
  const list = await server.call("GET", "/key")
  expect(list.body.data.map((key: { name: string }) => key.name).sort()).toEqual(["test", "worker"])
  for (const { text } of [read, list]) expect(text).not.toContain(token.split("_")[2])
  expect((await server.call("DELETE", `/key/${id}`)).status).toBe(204)
  expect((await server.call("GET", "/app/acme", { key: token })).status).toBe(401)
  expect((await server.call("GET", `/key/${id}`)).body.revokedAt).toBe(new Date(clock.now()).toISOString())
})

test("keys and sessions of the organization are listed apart from those of its applications", async () => {
  const server = await ApiServer.start()
  await server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const { url } = (await server.call("POST", "/auth/app-portal-access/acme", { body: {} })).body
  const signIns = [{ key: server.key }, { code: new URL(url).hash.slice("#code=".length) }]
  for (const given of signIns)
    await server.call("POST", "/auth/session", { body: { ...given, cookie: false } })
  for (const path of ["/key", "/session"]) {
    const names = async (query: string) => {
      const { body } = await server.call("GET", path + query)
      return body.data.map(({ name }: { name: string }) => name).sort()
    }
    expect(await names(""), path).toEqual(["portal", "test"])
    expect(await names("?organization=false"), path).toEqual(["portal", "test"])
    expect(await names("?organization=true"), path).toEqual(["test"])
    expect(await names("?app_id=acme"), path).toEqual(["portal"])
    expect(await server.call("GET", `${path}?app_id=nobody`)).toMatchObject({ status: 404 })
    expect(await server.call("GET", `${path}?app_id=acme&organization=true`)).toMatchObject({
      status: 422,
      body: {
        detail: [
          { loc: ["query", "organization"], msg: "organization cannot be true when an application is given" },
        ],
      },
    })
  }
})

test("a key can be revoked with a delay, which can be shortened and not extended", async () => {
  const clock = new TestClock()
  const server = await ApiServer.start({ clock })
  const { body } = await server.call("POST", "/key", { body: { name: "old", scope: "admin" } })
  const revoke = (inSeconds: number) => server.call("DELETE", `/key/${body.id}?inSeconds=${inSeconds}`)
  for (const seconds of [60, 3600]) await revoke(seconds)
  clock.advance(59_999)
  expect((await server.call("GET", "/app", { key: body.token })).status).toBe(200)
  clock.advance(1)
  expect((await server.call("GET", "/app", { key: body.token })).status).toBe(401)
  expect((await revoke(-1)).status).toBe(422)
})

test("only an admin's key makes others, and revokes them", async () => {
  const server = await ApiServer.start()
  const { posthorn } = server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  for (const input of [{ scope: "application", appId: "acme" }, { scope: "read" }] as const) {
    const { token, id } = await posthorn.keys.create({ name: "narrow", ...input })
    const body = { name: "wide", scope: "admin" }
    expect((await server.call("POST", "/key", { key: token, body })).status).toBe(403)
    expect((await server.call("DELETE", `/key/${id}`, { key: token })).status).toBe(403)
  }
  expect((await posthorn.keys.list()).data.map(({ name }) => name)).not.toContain("wide")
})

test("another tenant's keys are not there", async () => {
  const server = await ApiServer.start()
  const other = await server.posthorn.tenant("org_other").keys.create({ name: "theirs", scope: "admin" })
  expect((await server.call("GET", "/key")).text).not.toContain("theirs")
  for (const method of ["GET", "DELETE"])
    expect((await server.call(method, `/key/${other.id}`)).status).toBe(404)
  expect((await server.call("GET", "/app", { key: other.token })).status).toBe(200)
})

test("an invalid key is refused with the field", async () => {
  const server = await ApiServer.start()
  for (const [body, ...loc] of [
    [{ scope: "admin" }, "name"],
    [{ name: "x", scope: "root" }, "scope"],
    [{ name: "x", scope: "application" }, "appId"],
    [{ name: "x", scope: "admin", appId: "acme" }, "appId"],
    [{ name: "x", scope: "read", appId: "nobody" }, "appId"],
    [{ name: "x", scope: "admin", capabilities: ["ViewBase"] }, "capabilities"],
    [{ name: "x", scope: "admin", expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"],
    [{ name: "x", scope: "admin", expiresAt: "soon" }, "expiresAt"],
    [{ name: "x", scope: "admin", token: "mine" }, "token"],
  ] as const)
    expect(await server.call("POST", "/key", { body })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", ...loc] }] },
    })
})
