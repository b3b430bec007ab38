/** Entries: small documents of a tenant, each change made from the version before it. */
import { describe, expect, test } from "vitest"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import type { SetUp } from "./stage.ts"

export function entries(name: string, setUp: SetUp): void {
  describe(`${name}: entries`, () => {
    test("an entry reads back as it was written, and as it was changed", async () => {
      const { store } = await setUp()
      const entry = sample.entry({ kind: "event-type", name: "user.signed-up", body: '{"ä":"€"}' })
      await store.saveEntryIfUnchanged(entry)
      expect(await store.getEntry("event-type", ORG, entry.name, NOW)).toEqual(entry)
      const changed = { ...entry, body: "{}", version: 2, updatedAt: NOW + 5, expiresAt: NOW + 9 }
      await store.saveEntryIfUnchanged(changed)
      expect(await store.getEntry("event-type", ORG, entry.name, NOW)).toEqual(changed)
      expect(await store.getEntry("key", ORG, entry.name, NOW)).toBeNull()
    })

    test("a change of an old version is refused, and so is a second first version", async () => {
      const { store } = await setUp()
      const entry = sample.entry()
      await store.saveEntryIfUnchanged(entry)
      await store.saveEntryIfUnchanged({ ...entry, version: 2 })
      for (const version of [1, 2, 4])
        await expect(store.saveEntryIfUnchanged({ ...entry, version, body: "late" })).rejects.toMatchObject({
          code: "conflict",
        })
      await expect(store.saveEntryIfUnchanged(sample.entry({ version: 2 }))).rejects.toMatchObject({
        code: "conflict",
      })
      expect(await store.getEntry(entry.kind, ORG, entry.name, NOW)).toEqual({ ...entry, version: 2 })
    })

    test("of many concurrent writes of one version, one succeeds", async () => {
      const { store } = await setUp()
      const entry = sample.entry({ kind: "answer" })
      for (const version of [1, 2]) {
        const writes = Array.from({ length: 20 }, (_, i) =>
          store.saveEntryIfUnchanged({ ...entry, version, body: String(i) }),
        )
        const results = await Promise.allSettled(writes)
        expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
      }
    })

    test("an expired entry is not found, and can be replaced", async () => {
      const { store } = await setUp()
      const entry = sample.entry({ kind: "answer", expiresAt: NOW + 10 })
      await store.saveEntryIfUnchanged(entry)
      const found = (now: number) => store.getEntry("answer", ORG, entry.name, now)
      const listed = (now: number) => store.listEntries("answer", ORG, newest(9), now)
      expect(await found(NOW + 9)).toEqual(entry)
      expect(await found(NOW + 10)).toBeNull()
      expect(await listed(NOW + 9)).toHaveLength(1)
      expect(await listed(NOW + 10)).toEqual([])
      const next = { ...entry, body: "new", createdAt: NOW + 10, updatedAt: NOW + 10, expiresAt: NOW + 20 }
      await expect(store.saveEntryIfUnchanged({ ...next, updatedAt: NOW + 9 })).rejects.toMatchObject({
        code: "conflict",
      })
      await store.saveEntryIfUnchanged(next)
      expect(await found(NOW + 10)).toEqual(next)
    })

    test("two tenants can use the same name; a name is also found without its tenant", async () => {
      const { store } = await setUp()
      const [ours, theirs] = [ORG, OTHER_ORG].map((orgId) =>
        sample.entry({ orgId, name: "same", body: orgId }),
      )
      await store.saveEntryIfUnchanged(ours!)
      expect(await store.getEntry("key", OTHER_ORG, "same", NOW)).toBeNull()
      expect(await store.getEntry("key", null, "same", NOW)).toEqual(ours)
      await store.saveEntryIfUnchanged(theirs!)
      expect(await store.getEntry("key", OTHER_ORG, "same", NOW)).toEqual(theirs)
      expect(await store.listEntries("key", ORG, newest(9), NOW)).toEqual([ours])
      await store.deleteEntry("key", OTHER_ORG, "same")
      expect(await store.getEntry("key", null, "same", NOW)).toEqual(ours)
    })

    test("many entries are found by their names, whoever has them", async () => {
      const { store } = await setUp()
      const [first, second] = [sample.entry({ name: "a" }), sample.entry({ name: "b", orgId: OTHER_ORG })]
      const rest = [
        sample.entry({ name: "c" }),
        sample.entry({ name: "a", kind: "answer" }),
        sample.entry({ name: "d", expiresAt: NOW }),
      ]
      for (const entry of [first, second, ...rest]) await store.saveEntryIfUnchanged(entry)
      const found = await store.getEntries("key", ["b", "a", "d", "nobody"], NOW)
      expect(found.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([first, second])
      expect(await store.getEntries("key", [], NOW)).toEqual([])
    })

    test("entries are listed by owner, and keep their owner when they change", async () => {
      const { store } = await setUp()
      const [first, second] = ["a", "b"].map((name) => sample.entry({ name, owner: "app_1" }))
      const rest = [
        sample.entry({ owner: "app_2" }),
        sample.entry(),
        sample.entry({ owner: "app_1", orgId: OTHER_ORG }),
        sample.entry({ owner: "app_1", kind: "answer" }),
      ]
      for (const entry of [second!, first!, ...rest]) await store.saveEntryIfUnchanged(entry)
      const changed = { ...first!, version: 2, body: "{}" }
      await store.saveEntryIfUnchanged(changed)
      const page = { limit: 9, order: "ascending", from: null, back: false } as const
      const owned = (owner: string, now = NOW) => store.listEntries("key", ORG, page, now, owner)
      expect(await owned("app_1")).toEqual([changed, second])
      expect(await owned("app_3")).toEqual([])
      expect(await store.listEntries("key", ORG, page, NOW)).toHaveLength(4)
      await store.saveEntryIfUnchanged({ ...changed, version: 3, expiresAt: NOW + 5 })
      expect(await owned("app_1", NOW + 5)).toEqual([second])
      const anew = { ...first!, owner: "app_2", updatedAt: NOW + 5 }
      await store.saveEntryIfUnchanged(anew)
      expect(await owned("app_2", NOW + 5)).toContainEqual(anew)
    })

    test("the name of a deleted entry can be used again", async () => {
      const { store } = await setUp()
      const entry = sample.entry()
      await store.saveEntryIfUnchanged(entry)
      await store.deleteEntry("key", ORG, entry.name)
      await store.deleteEntry("key", ORG, entry.name)
      expect(await store.getEntry("key", ORG, entry.name, NOW)).toBeNull()
      await store.saveEntryIfUnchanged(entry)
    })

    test("names are listed in the order of their bytes", async () => {
      const { store } = await setUp()
      for (const name of ["b", "a_b", "a.b", "B", "a-b", "a"])
        await store.saveEntryIfUnchanged(sample.entry({ name }))
      const page = { limit: 9, order: "ascending", from: null, back: false } as const
      const listed = await store.listEntries("key", ORG, page, NOW)
      expect(listed.map((entry) => entry.name)).toEqual(["B", "a", "a-b", "a.b", "a_b", "b"])
    })
  })
}
