/** Sources as a resource: what is stored and shown, and who may share what. */
import { expect, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { seededIds } from "../../src/core/seeded-ids.ts"
import type { SourceInput } from "../../src/sources/sources.ts"
import { Harness } from "../support/harness.ts"

const GITHUB = { name: "github", verification: "github", secret: "It's a Secret to Everybody" } as const

async function start() {
  const harness = await Harness.start({ deliver: false })
  const { posthorn } = harness
  const acme = await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.applications.create({ uid: "globex", name: "Globex" })
  return { harness, posthorn, sources: posthorn.sources, acme }
}

test("a source has its scheme's defaults, a URL that is shown again, and a secret that is not", async () => {
  const { harness, sources, acme } = await start()
  const created = await sources.create("acme", GITHUB)
  expect(created).toEqual({
    id: expect.stringMatching(/^src_[0-9A-Za-z]{27}$/),
    appId: acme.id,
    name: "github",
    description: "",
    eventType: null,
    verification: { scheme: "github" },
    deduplication: "scheme",
    handshake: null,
    rateLimit: 1000,
    maxBytes: null,
    enabled: true,
    token: expect.stringMatching(/^[0-9A-Za-z]{59}$/),
    path: `/in/${created.token}`,
    secrets: { count: 1, overlapEndsAt: null },
    createdAt: expect.any(Date),
    updatedAt: expect.any(Date),
  })
  expect(created.token.slice(0, 27)).toBe(created.id.slice(4))
  expect(await sources.get("acme", created.id)).toEqual(created)
  expect(await sources.get("acme", "github")).toEqual(created)
  expect(await sources.list("acme")).toMatchObject({ data: [created], done: true })
  const { store } = harness.posthorn.context
  const entry = await store.getEntry("source", DEFAULT_ORG, created.id, harness.clock.now())
  expect(entry!.body).not.toContain(GITHUB.secret)
  expect(entry!.body).not.toContain(created.token.slice(27))
})

test("each field can be set, changed and reset", async () => {
  const { sources } = await start()
  const full: SourceInput = {
    name: "meta",
    description: "WhatsApp",
    eventType: { header: "X-Kind" },
    verification: { scheme: "hmac", header: "X-Hub-Signature-256", prefix: "sha256=" },
    secret: "app secret",
    handshake: { kind: "meta", verifyToken: "meatyhamhock" },
    deduplication: { pointer: "/entry/0/id" },
    rateLimit: 5,
    maxBytes: 1000,
    enabled: false,
  }
  const { secret: _, ...shown } = full
  expect(await sources.create("acme", full)).toMatchObject({
    ...shown,
    eventType: { header: "x-kind" },
    verification: { scheme: "hmac", header: "x-hub-signature-256", prefix: "sha256=", algorithm: "sha256" },
    handshake: { kind: "meta" },
  })
  const changes = {
    name: "other",
    description: "",
    eventType: null,
    handshake: null,
    deduplication: "off",
    rateLimit: 6,
    maxBytes: null,
    enabled: true,
  } as const
  expect(await sources.update("acme", "meta", changes)).toMatchObject(changes)
  await expect(sources.get("acme", "meta")).rejects.toMatchObject({ code: "not_found" })
  expect(await sources.get("acme", "other")).toMatchObject(changes)
})

test("the scheme slack answers Slack's challenge without being told, and may be told not to", async () => {
  const { sources } = await start()
  const slack = { verification: "slack", secret: "8f742231b10e8888abcd99yyyzzz85a5" } as const
  expect(await sources.create("acme", { name: "a", ...slack })).toMatchObject({
    handshake: { kind: "slack" },
  })
  expect(await sources.create("acme", { name: "b", ...slack, handshake: null })).toMatchObject({
    handshake: null,
  })
})

test("the default handshake follows the scheme, and an explicit one stays", async () => {
  const { sources } = await start()
  const change = (name: string, input: Partial<SourceInput>) =>
    sources.update("acme", name, { secret: "s3cret", ...input }).then(({ handshake }) => handshake)
  for (const [name, handshake] of [
    ["default", undefined],
    ["none", null],
    ["graph", { kind: "microsoft-graph" }],
  ] as const) {
    await sources.create("acme", { ...GITHUB, name, ...(handshake === undefined ? {} : { handshake }) })
    const expected = handshake === undefined ? { kind: "slack" } : handshake
    expect(await change(name, { verification: "slack" }), name).toEqual(expected)
    expect(await change(name, { verification: "github" }), name).toEqual(handshake ?? null)
  }
  expect(await change("default", { handshake: null })).toBeNull()
  expect(await change("default", { verification: "slack" })).toBeNull()
})

test("Meta's token stays when a change does not name it, and is required once", async () => {
  const { sources } = await start()
  const meta = { name: "meta", verification: "none", handshake: { kind: "meta" } } as const
  const missing = { code: "invalid_input", field: "handshake.verifyToken" }
  await expect(sources.create("acme", meta)).rejects.toMatchObject(missing)
  await sources.create("acme", { ...meta, handshake: { kind: "meta", verifyToken: "x" } })
  await sources.update("acme", "meta", { handshake: { kind: "meta" } })
  await sources.update("acme", "meta", { handshake: null })
  await expect(sources.update("acme", "meta", { handshake: { kind: "meta" } })).rejects.toMatchObject(missing)
})

test("another scheme keeps the secret if it can verify with it, and asks for one if not", async () => {
  const { sources } = await start()
  await sources.create("acme", { name: "a", verification: "none" })
  const missing = { code: "invalid_input", field: "secret" }
  await expect(sources.update("acme", "a", { verification: "github" })).rejects.toMatchObject(missing)
  await sources.update("acme", "a", { verification: "github", secret: "not base64!" })
  await sources.update("acme", "a", { verification: "shopify" })
  await expect(sources.update("acme", "a", { verification: "svix" })).rejects.toMatchObject(missing)
  await expect(sources.update("acme", "a", { verification: "none", secret: "x" })).rejects.toMatchObject(
    missing,
  )
  expect(await sources.update("acme", "a", { verification: "none" })).toMatchObject({ secrets: { count: 0 } })
})

test("input that does not fit is refused with its field, and nothing is stored", async () => {
  const { sources } = await start()
  const inputs: readonly [string, Partial<SourceInput>][] = [
    ["name", {}],
    ["name", { name: "a b" }],
    ["name", { name: "src_1" }],
    ["name", { name: "x".repeat(249) }],
    ["verification", { name: "a" }],
    ["secret", { name: "a", verification: "github" }],
    ["eventType", { ...GITHUB, eventType: "a b" }],
    ["eventType", { ...GITHUB, eventType: {} as never }],
    ["eventType", { ...GITHUB, eventType: { header: "x", pointer: "/y" } as never }],
    ["eventType.header", { ...GITHUB, eventType: { header: "a b" } }],
    ["eventType.pointer", { ...GITHUB, eventType: { pointer: "id" } }],
    ["eventType.path", { ...GITHUB, eventType: { path: "/id" } as never }],
    ["deduplication", { ...GITHUB, deduplication: "on" as never }],
    ["handshake.kind", { ...GITHUB, handshake: { kind: "discord" as never } }],
    ["handshake.verifyToken", { ...GITHUB, handshake: { kind: "slack", verifyToken: "x" } }],
    ["rateLimit", { ...GITHUB, rateLimit: 0 }],
    ["maxBytes", { ...GITHUB, maxBytes: 0 }],
    ["enabled", { ...GITHUB, enabled: "yes" as never }],
    ["url", { ...GITHUB, url: "x" } as never],
  ]
  for (const [field, input] of inputs)
    await expect(sources.create("acme", input as SourceInput)).rejects.toMatchObject({
      code: "invalid_input",
      field,
    })
  expect((await sources.list("acme")).data).toEqual([])
})

test("the list of all applications has the sources of each", async () => {
  const { sources } = await start()
  const made = [await sources.create("acme", GITHUB), await sources.create("globex", GITHUB)]
  const { data } = await sources.list(null)
  expect(data.map(({ id }) => id).sort()).toEqual(made.map(({ id }) => id).sort())
})

test("a name is taken once in an application, whoever asks at the same time, and free again afterwards", async () => {
  const { sources } = await start()
  const taken = { code: "conflict", field: "name" }
  const results = await Promise.allSettled([1, 2, 3, 4].map(() => sources.create("acme", GITHUB)))
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  for (const one of results) if (one.status === "rejected") expect(one.reason).toMatchObject(taken)
  expect((await sources.list("acme")).data).toHaveLength(1)
  await sources.create("globex", GITHUB)
  await sources.create("acme", { ...GITHUB, name: "second" })
  await expect(sources.update("acme", "second", { name: "github" })).rejects.toMatchObject(taken)
  await sources.update("acme", "github", { name: "first" })
  await sources.update("acme", "second", { name: "github" })
  await sources.delete("acme", "github")
  await sources.create("acme", GITHUB)
})

test("a name that a crash left reserved is free after a minute", async () => {
  const { harness, sources } = await start()
  const { store } = harness.posthorn.context
  const save = store.saveEntryIfUnchanged
  store.saveEntryIfUnchanged = async (entry) => {
    if (entry.kind === "source") throw new Error("killed")
    return save.call(store, entry)
  }
  await expect(sources.create("acme", GITHUB)).rejects.toThrow("killed")
  store.saveEntryIfUnchanged = save
  await expect(sources.create("acme", GITHUB)).rejects.toMatchObject({ code: "conflict" })
  harness.clock.advance(60_000)
  await sources.create("acme", GITHUB)
})

test("a request that is repeated after a crash finds the source that it made", async () => {
  const { posthorn } = await start()
  const create = () =>
    posthorn.tenant(DEFAULT_ORG, { ids: seededIds("request 1", 0) }).sources.create("acme", GITHUB)
  expect(await create()).toEqual(await create())
})

test("an application has at most 100 sources", async () => {
  const { sources } = await start()
  for (let n = 0; n < 100; n++) await sources.create("acme", { name: `s${n}`, verification: "none" })
  const full = { code: "limit_reached" }
  await expect(sources.create("acme", GITHUB)).rejects.toMatchObject(full)
  await sources.create("globex", GITHUB)
  await sources.delete("acme", "s7")
  await sources.create("acme", GITHUB)
  await expect(
    sources.create("acme", { ...GITHUB, name: "one more".replaceAll(" ", "-") }),
  ).rejects.toMatchObject(full)
})

test("the sources of another application or tenant cannot be read, changed or deleted", async () => {
  const { posthorn, sources } = await start()
  const { id } = await sources.create("acme", GITHUB)
  const other = posthorn.tenant("org_other")
  await other.applications.create({ uid: "acme", name: "Acme" })
  const unknown = { code: "not_found" }
  for (const [tenant, app] of [
    [posthorn, "globex"],
    [other, "acme"],
  ] as const)
    for (const source of [id, "github"]) {
      await expect(tenant.sources.get(app, source)).rejects.toMatchObject(unknown)
      await expect(tenant.sources.update(app, source, { rateLimit: 1 })).rejects.toMatchObject(unknown)
      await expect(tenant.sources.rotateSecret(app, source, { secret: "x" })).rejects.toMatchObject(unknown)
      await expect(tenant.sources.activity(app, source)).rejects.toMatchObject(unknown)
      await expect(tenant.sources.delete(app, source)).rejects.toMatchObject(unknown)
    }
  expect((await other.sources.list("acme")).data).toEqual([])
  expect((await sources.list("acme")).data).toHaveLength(1)
})

test("a rotation says until when the old secret is accepted", async () => {
  const { harness, sources } = await start()
  await sources.create("acme", GITHUB)
  const inAnHour = new Date(harness.clock.wallNow() + 3_600_000)
  const rotated = await sources.rotateSecret("acme", "github", { secret: "new", gracePeriodSeconds: 3600 })
  expect(rotated.secrets).toEqual({ count: 2, overlapEndsAt: inAnHour })
  harness.clock.advance(3_600_000)
  expect((await sources.get("acme", "github")).secrets).toEqual({ count: 1, overlapEndsAt: null })
  for (const input of [
    {},
    { secret: "" },
    { secret: "x", gracePeriodSeconds: -1 },
    { secret: "x", key: "y" },
  ])
    await expect(sources.rotateSecret("acme", "github", input as never)).rejects.toMatchObject({
      code: "invalid_input",
    })
})

test("old secrets do not pile up without end", async () => {
  const { sources } = await start()
  await sources.create("acme", GITHUB)
  for (let n = 0; n < 10; n++) await sources.rotateSecret("acme", "github", { secret: `secret ${n}` })
  const rotate = (gracePeriodSeconds: number) =>
    sources.rotateSecret("acme", "github", { secret: "one more", gracePeriodSeconds })
  await expect(rotate(1)).rejects.toMatchObject({ code: "limit_reached" })
})

test("deleting an application deletes its sources", async () => {
  const { harness, posthorn, sources } = await start()
  const { id } = await sources.create("acme", GITHUB)
  await posthorn.applications.delete("acme")
  const { store } = posthorn.context
  expect(await store.getEntry("source", null, id, harness.clock.now())).toBeNull()
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  expect((await sources.list("acme")).data).toEqual([])
})
