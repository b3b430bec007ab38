/** Keys over a real store: what they open, for how long, and what is kept of them. */
import { expect, onTestFinished, test, vi } from "vitest"
import { TestClock } from "../../test/support/clock.ts"
import { DEFAULT_ORG } from "../core/org.ts"
import { openPosthorn, type Posthorn } from "../posthorn.ts"
import type { Entry, Store } from "../store/store.ts"
import { KeyRing } from "./key-ring.ts"
import { readToken } from "./key-token.ts"

const OTHER = "org_other"

async function open(wrapStore = (store: Store) => store) {
  const clock = new TestClock()
  const posthorn = await openPosthorn(
    { store: "sqlite::memory:", deliver: false, logger: "silent" },
    { clock, wrapStore },
  )
  onTestFinished(() => posthorn.close())
  return { clock, posthorn, ring: new KeyRing(posthorn.context.store, clock) }
}

const admin = (posthorn: Posthorn) => posthorn.keys.create({ name: "ops", scope: "admin" })

/** A store that counts what is read of keys. */
function counting() {
  const counts = { reads: 0 }
  const wrap = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        return (...args: unknown[]) => {
          if (name === "getEntry") counts.reads++
          return value.apply(target, args)
        }
      },
    })
  return { counts, wrap }
}

test("a key opens what it was made for, in whichever tenant", async () => {
  const { posthorn, ring } = await open()
  const { token, id } = await admin(posthorn)
  expect(token).toMatch(/^ph_[0-9A-Za-z]{16}_[0-9A-Za-z]{40}$/)
  expect(await ring.verify(token)).toMatchObject({
    ok: true,
    key: { id, orgId: DEFAULT_ORG, scope: "admin" },
  })
  const other = await posthorn.tenant(OTHER).keys.create({ name: "theirs", scope: "read" })
  expect(await ring.verify(other.token)).toMatchObject({
    ok: true,
    key: { orgId: OTHER, scope: "read", capabilities: ["ViewBase"] },
  })
  await expect(posthorn.keys.get(other.id)).rejects.toMatchObject({ code: "not_found" })
})

test("neither the token nor its secret is in the store", async () => {
  const { posthorn } = await open()
  const { token, id } = await admin(posthorn)
  const entry = await posthorn.context.store.getEntry("key", DEFAULT_ORG, id, 0)
  expect(JSON.stringify(entry)).not.toContain(readToken(token)!.secret)
  expect(JSON.stringify(await posthorn.keys.list())).not.toMatch(/digest|token/)
})

test.each([
  ["", "malformed"],
  ["ph_short_secret", "malformed"],
  ["twenty-three-characters", "malformed"],
  [`ph_${"a".repeat(16)}_${"b".repeat(40)}`, "unknown"],
  ["a-text-that-is-long-enough-to-be-one", "unknown"],
])("%j is %s", async (token, reason) => {
  const { ring } = await open()
  expect(await ring.verify(token)).toEqual({ ok: false, reason })
})

test("the right id with another secret is unknown", async () => {
  const { posthorn, ring } = await open()
  const { token } = await admin(posthorn)
  const wrong = token.slice(0, -1) + (token.endsWith("a") ? "b" : "a")
  expect(await ring.verify(wrong)).toEqual({ ok: false, reason: "unknown" })
  expect(await ring.verify(token)).toMatchObject({ ok: true })
})

test("after the right secret another is as unknown as before, with the same length or without", async () => {
  const { posthorn, ring } = await open()
  const { token } = await admin(posthorn)
  const own = "a-random-text-from-the-operator"
  await posthorn.keys.adopt(own, { name: "env", scope: "admin" })
  for (const right of [token, own]) {
    const wrong = right.slice(0, -1) + (right.endsWith("a") ? "b" : "a")
    for (let i = 0; i < 2; i++) {
      expect(await ring.verify(right)).toMatchObject({ ok: true })
      expect(await ring.verify(wrong)).toEqual({ ok: false, reason: "unknown" })
      expect(await ring.verify(`${right}0`)).toEqual({ ok: false, reason: "unknown" })
    }
  }
  // Without its name it is no key, though its secret was right a moment ago.
  expect(await ring.verify(readToken(token)!.secret)).toEqual({ ok: false, reason: "unknown" })
})

test("the operator's own opens nothing once it is revoked, though its name is known", async () => {
  const { posthorn, ring } = await open()
  const own = "a-random-text-from-the-operator"
  const { id } = await posthorn.keys.adopt(own, { name: "env", scope: "admin" })
  for (let i = 0; i < 2; i++) expect(await ring.verify(own)).toMatchObject({ ok: true })
  await posthorn.keys.revoke(id)
  expect(await ring.verify(own)).toEqual({ ok: false, reason: "revoked" })
})

test("it ends when it was said to, and says why", async () => {
  const { clock, posthorn, ring } = await open()
  const expiresAt = new Date(clock.now() + 60_000)
  const { token } = await posthorn.keys.create({ name: "brief", scope: "admin", expiresAt })
  clock.advance(59_999)
  expect(await ring.verify(token)).toMatchObject({ ok: true })
  clock.advance(1)
  expect(await ring.verify(token)).toEqual({ ok: false, reason: "expired" })
})

test("a key that was used a moment ago is known at once, and is asked for again after two seconds", async () => {
  const { posthorn, ring } = await open()
  const { token } = await admin(posthorn)
  const now = posthorn.context.clock.now()
  await ring.verify(token, now)
  expect(ring.verify(token, now + 1999)).toMatchObject({ ok: true })
  expect(ring.verify(`${token}0`, now + 1999)).toEqual({ ok: false, reason: "unknown" })
  expect(ring.verify(token, now + 2000)).toBeInstanceOf(Promise)
})

test("revoked here it opens nothing from that moment, though it was just used", async () => {
  const { posthorn, ring } = await open()
  const { token, id } = await admin(posthorn)
  await ring.verify(token)
  await posthorn.keys.revoke(id)
  expect(await ring.verify(token)).toEqual({ ok: false, reason: "revoked" })
  expect((await posthorn.keys.get(id)).revokedAt).toEqual(new Date(posthorn.context.clock.now()))
})

test("a read that was in flight when the key was revoked is not cached", async () => {
  let hold: Promise<void> | null = null
  const { posthorn, ring } = await open(
    (store) =>
      new Proxy(store, {
        get(target, name) {
          const value = Reflect.get(target, name)
          if (name !== "getEntry") return typeof value === "function" ? value.bind(target) : value
          return async (...args: unknown[]) => {
            const entry = await value.apply(target, args)
            await hold
            return entry
          }
        },
      }),
  )
  const { token, id } = await admin(posthorn)
  const { promise, resolve } = Promise.withResolvers<void>()
  hold = promise
  const early = ring.verify(token)
  hold = null
  await posthorn.keys.revoke(id)
  resolve()
  await early
  expect(await ring.verify(token)).toEqual({ ok: false, reason: "revoked" })
})

test("revoked elsewhere it opens nothing two seconds later", async () => {
  const { counts, wrap } = counting()
  const { clock, posthorn, ring } = await open(wrap)
  const { token, id } = await admin(posthorn)
  await ring.verify(token)
  await ring.close()
  const { store } = posthorn.context
  const entry = (await store.getEntry("key", DEFAULT_ORG, id, 0))!
  const body = JSON.stringify({ ...JSON.parse(entry.body), revokedAt: clock.now() })
  await store.saveEntryIfUnchanged({ ...entry, body, version: entry.version + 1 })
  counts.reads = 0
  clock.advance(1999)
  expect(await ring.verify(token)).toMatchObject({ ok: true })
  expect(counts.reads).toBe(0)
  clock.advance(1)
  expect(await ring.verify(token)).toEqual({ ok: false, reason: "revoked" })
})

test("it can be revoked later, and sooner again, but not later again", async () => {
  const { clock, posthorn, ring } = await open()
  const { token, id } = await admin(posthorn)
  await posthorn.keys.revoke(id, { inSeconds: 600 })
  await posthorn.keys.revoke(id, { inSeconds: 60 })
  await posthorn.keys.revoke(id, { inSeconds: 3600 })
  clock.advance(59_000)
  expect(await ring.verify(token)).toMatchObject({ ok: true })
  clock.advance(1000)
  expect(await ring.verify(token)).toEqual({ ok: false, reason: "revoked" })
})

test("an application's keys are revoked together, or those of some sessions", async () => {
  const { posthorn } = await open()
  const { id: appId } = await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.applications.create({ uid: "globex", name: "Globex" })
  const make = (app: string, sessionId: string | null) =>
    posthorn.keys.create({ name: "portal", scope: "application", appId: app, sessionId })
  const [one, two, none, theirs] = [
    await make("acme", "visit-1"),
    await make("acme", "visit-2"),
    await make("acme", null),
    await make("globex", "visit-1"),
  ]
  const revoked = async () => {
    const all = [one, two, none, theirs].map(({ id }) => posthorn.keys.get(id))
    return (await Promise.all(all)).map(({ revokedAt }) => revokedAt !== null)
  }
  expect(one.appId).toBe(appId)
  expect(await posthorn.keys.revokeAll("acme", { sessionIds: ["visit-1"] })).toBe(1)
  expect(await revoked()).toEqual([true, false, false, false])
  expect(await posthorn.keys.revokeAll("acme")).toBe(3)
  expect(await revoked()).toEqual([true, true, true, false])
  const tooLong = posthorn.keys.revokeAll("acme", { inSeconds: 31_536_001 })
  await expect(tooLong).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("inSeconds"),
  })
})

test("with its application a key is over, from that moment", async () => {
  const { posthorn, ring } = await open()
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.applications.create({ uid: "globex", name: "Globex" })
  const make = (scope: "application" | "read", appId: string) =>
    posthorn.keys.create({ name: "portal", scope, appId })
  const gone = [await make("application", "acme"), await make("read", "acme")]
  const others = [await make("application", "globex"), await admin(posthorn)]
  for (const { token } of [...gone, ...others]) expect(await ring.verify(token)).toMatchObject({ ok: true })
  await posthorn.applications.delete("acme")
  for (const { token } of gone) expect(await ring.verify(token)).toEqual({ ok: false, reason: "revoked" })
  for (const { token } of others) expect(await ring.verify(token)).toMatchObject({ ok: true })
})

test("an application's keys are revoked without a look at anybody else's", async () => {
  const { posthorn } = await open()
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await admin(posthorn)
  const { id } = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  const lists = vi.spyOn(posthorn.context.store, "listEntries")
  await posthorn.keys.revokeAll("acme")
  const read = await Promise.all(lists.mock.results.map(({ value }) => value as Promise<Entry[]>))
  expect(read.flat().map(({ name }) => name)).toEqual([id])
})

test("its last use is written down at most once a minute, and not by the request itself", async () => {
  const { clock, posthorn, ring } = await open()
  const { token, id } = await admin(posthorn)
  const lastUsed = async () => (await posthorn.keys.get(id)).lastUsedAt?.getTime() ?? null
  const first = clock.now()
  await ring.verify(token)
  expect(await lastUsed()).toBeNull()
  await ring.close()
  expect(await lastUsed()).toBe(first)
  for (const [ms, expected] of [
    [59_000, first],
    [1000, first + 60_000],
  ] as const) {
    clock.advance(ms)
    await ring.verify(token)
    await ring.close()
    expect(await lastUsed()).toBe(expected)
  }
})

test("lists go page by page, by id", async () => {
  const { posthorn } = await open()
  const made = []
  for (let n = 0; n < 5; n++) made.push((await admin(posthorn)).id)
  const first = await posthorn.keys.list({ limit: 3 })
  const second = await posthorn.keys.list({ limit: 3, cursor: first.cursor })
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(made.sort())
  expect([first.done, second.done]).toEqual([false, true])
})

test("an application's keys are listed by themselves, and so are the tenant's own", async () => {
  const { posthorn } = await open()
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const tenants = [await admin(posthorn), await posthorn.keys.create({ name: "all", scope: "read" })]
  const one = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  const ids = async (appId?: string | null) =>
    (await posthorn.keys.list(appId === undefined ? {} : { appId })).data.map(({ id }) => id)
  expect(await ids("acme")).toEqual([one.id])
  expect(await ids(null)).toEqual(tenants.map(({ id }) => id).sort())
  expect(await ids()).toHaveLength(3)
  await expect(ids("globex")).rejects.toMatchObject({ code: "not_found" })
})

test("a token of the operator's own is taken as it is, and stays what it is", async () => {
  const { posthorn, ring } = await open()
  const own = "a-random-text-from-the-operator"
  const { id } = await posthorn.keys.adopt(own, { name: "env", scope: "admin" })
  expect(await ring.verify(own)).toMatchObject({ ok: true, key: { id, scope: "admin" } })
  await posthorn.keys.revoke(id)
  const again = await posthorn.keys.adopt(own, { name: "env", scope: "admin" })
  expect(again.revokedAt).not.toBeNull()
  const ours = `ph_${"a".repeat(16)}_${"b".repeat(32)}`
  expect(await posthorn.keys.adopt(ours, { name: "env", scope: "admin" })).toMatchObject({
    id: "a".repeat(16),
  })
  const other = `ph_${"a".repeat(16)}_${"c".repeat(32)}`
  await expect(posthorn.keys.adopt(other, { name: "env", scope: "admin" })).rejects.toMatchObject({
    code: "conflict",
  })
  await expect(posthorn.keys.adopt("short", { name: "env", scope: "admin" })).rejects.toMatchObject({
    code: "invalid_input",
    field: "token",
  })
})

test.each([
  [{ name: "x", scope: "owner" }, "scope"],
  [{ name: "x", scope: "application" }, "appId"],
  [{ name: "x", scope: "admin", appId: "acme" }, "appId"],
  [{ name: "x", scope: "read", capabilities: ["Fly"] }, "capabilities"],
  [{ name: "x", scope: "admin", capabilities: ["ViewBase"] }, "capabilities"],
  [{ name: "x", scope: "admin", featureFlags: ["a b"] }, "featureFlags[0]"],
  [{ name: "x", scope: "admin", expiresAt: 1 }, "expiresAt"],
  [{ scope: "admin" }, "name"],
  [{ name: "x", scope: "admin", color: "red" }, "color"],
])("%j is refused by its %s", async (input, field) => {
  const { posthorn } = await open()
  await expect(posthorn.keys.create(input as never)).rejects.toMatchObject({ code: "invalid_input", field })
})
