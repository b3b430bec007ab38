/** Every list can be awaited, for one page, and iterated, for all of them. */
import { expect, test } from "vitest"
import type { NewChange } from "../../src/resources/changes.ts"
import type { List, Listing, PageInput } from "../../src/resources/paging.ts"
import { OPERATOR } from "../../src/resources/sessions.ts"
import { Harness } from "../support/harness.ts"

type Lists = { readonly [name: string]: (page?: PageInput) => Listing<object> }

/** A Posthorn with five of everything that there are lists of. */
async function start(): Promise<{ readonly harness: Harness; readonly lists: Lists }> {
  const harness = await Harness.start()
  const { posthorn } = harness
  harness.receiver.always("/hook", 500)
  for (let i = 0; i < 5; i++) {
    await posthorn.applications.create({ uid: `app${i}`, name: "Another" })
    await posthorn.eventTypes.create({ name: `type.${i}`, description: "A" })
    await posthorn.keys.create({ name: "key", scope: "admin" })
    await posthorn.sessions.open(OPERATOR)
    await posthorn.changes.record(aChange(harness))
    await posthorn.dead.retryMany({})
    await posthorn.alertChannels.put(`ops${i}`, { kind: "webhook", url: harness.receiver.url("/ops") })
    await harness.endpoint({ url: `relay://hub-${i}`, eventTypes: ["none"] })
    await posthorn.sources.create("acme", { name: `source${i}`, verification: "none" })
    await harness.endpoint({ uid: `hook${i}`, retry: { delays: [60], maxAttempts: i + 1 } }, "/hook")
  }
  for (let i = 0; i < 5; i++) await harness.send({ i })
  await harness.published("delivery.attempt", 25)
  await harness.published("delivery.dead", 5)
  const sending = async () => (await posthorn.lanes.list()).data.some((lane) => lane.sending > 0)
  await expect.poll(sending).toBe(false)
  const lists = {
    agents: (page) => posthorn.agents.list(page),
    alertChannels: (page) => posthorn.alertChannels.list(page),
    applications: (page) => posthorn.applications.list(page),
    attempts: (page) => posthorn.attempts.list(page),
    changes: (page) => posthorn.changes.list(page),
    dead: (page) => posthorn.dead.list(page),
    deliveries: (page) => posthorn.deliveries.list(page),
    endpoints: (page) => posthorn.endpoints.list("acme", page),
    eventTypes: (page) => posthorn.eventTypes.list(page),
    keys: (page) => posthorn.keys.list(page),
    lanes: (page) => posthorn.lanes.list(page),
    messages: (page) => posthorn.messages.list("acme", page),
    sessions: (page) => posthorn.sessions.list(page),
    sources: (page) => posthorn.sources.list("acme", page),
    tasks: (page) => posthorn.tasks.list(page),
  } satisfies Lists
  return { harness, lists }
}

function aChange({ posthorn, clock }: Harness): NewChange {
  const atMs = clock.now()
  const id = posthorn.context.ids.make("chg", atMs)
  const by = { kind: "local", id: null, name: "test", appId: null } as const
  return { id, atMs, by, action: "key.create", appId: null, endpointId: null, subject: null, detail: null }
}

test("iterating over a list gives the rows of its pages, forwards and back", async () => {
  const { lists } = await start()
  for (const [name, list] of Object.entries(lists)) {
    const { data: all, done } = await list({ limit: 250 })
    expect([all.length >= 4, done], name).toEqual([true, true])
    for (const limit of [2, 5, 250]) expect(await Array.fromAsync(list({ limit })), name).toEqual(all)
    const first = await list({ limit: 1 })
    const rest = await Array.fromAsync(list({ limit: 2, cursor: first.cursor }))
    expect([...first.data, ...rest], name).toEqual(all)
    const { previous } = (await list({ limit: 2, cursor: first.cursor })) as List<unknown>
    expect(await Array.fromAsync(list({ limit: 2, cursor: previous })), name).toEqual(first.data)
    const end = await pastTheEnd(list)
    expect(await Array.fromAsync(list({ limit: 2, cursor: end })), name).toEqual(all.toReversed().slice(1))
  }
})

/** The cursor that leads back from the last row. */
async function pastTheEnd(list: Lists[string]): Promise<string | null> {
  for (let cursor: string | null = null; ; ) {
    const page: List<unknown> = await list({ limit: 1, cursor })
    if (page.done) return page.previous
    cursor = page.cursor
  }
}

test("every list that Posthorn has is one of them", async () => {
  const { harness, lists } = await start()
  const { posthorn } = harness
  const owners = Object.entries(posthorn).filter(([, one]) => typeof one?.list === "function")
  expect(owners.map(([name]) => name).sort()).toEqual(
    [...Object.keys(lists), "alerts", "policies", "workers"].sort(),
  )
  for (const whole of [() => posthorn.policies.list(), () => posthorn.workers.list()])
    expect((await Array.fromAsync<object>(whole())).length).toBe((await whole()).length)
})

test("a list that is refused is refused when it is awaited and when it is iterated", async () => {
  const { posthorn } = await Harness.start()
  const wrong = { code: "invalid_input", field: "limit" }
  await expect(posthorn.messages.list("acme", { limit: 0 })).rejects.toMatchObject(wrong)
  await expect(Array.fromAsync(posthorn.messages.list("acme", { limit: 0 }))).rejects.toMatchObject(wrong)
  await expect(Array.fromAsync(posthorn.deliveries.list(null as never))).rejects.toMatchObject({
    code: "invalid_input",
  })
})
