/** The return of a disabled endpoint: waiting deliveries are sent or discarded, missed messages are replayed or left. */
import { expect, test } from "vitest"
import type { Store } from "../../src/store/store.ts"
import { Harness, type HarnessOptions } from "../support/harness.ts"

/** An endpoint with three deliveries that wait and three messages that it missed, two of them of its types. */
async function disabled(options: HarnessOptions = {}, input: object = {}) {
  const harness = await Harness.start(options)
  const id = await harness.endpoint({ eventTypes: ["held", "missed"], ...input }, "/hook")
  await harness.posthorn.endpoints.pause("acme", id)
  const held: string[] = []
  for (let n = 0; n < 3; n++) held.push(await harness.send({ n }, { eventType: "held" }))
  harness.clock.advance(1000)
  await harness.posthorn.endpoints.update("acme", id, { disabled: true })
  await harness.posthorn.endpoints.resume("acme", id)
  const disabledAt = new Date(harness.clock.now())
  harness.clock.advance(1000)
  const missed: string[] = []
  for (const eventType of ["missed", "other", "missed"]) missed.push(await harness.send({}, { eventType }))
  missed.splice(1, 1)
  return { harness, id, held, missed, disabledAt }
}

const received = (harness: Harness) => harness.receiver.to("/hook").map(({ id }) => id)
const statuses = async (harness: Harness) =>
  (await harness.rows()).map(({ status, dead_reason }) => [status, dead_reason])
const CANCELLED = ["dead", "cancelled"]
/** A busy machine may take its time. */
const PATIENTLY = { timeout: 20_000 }

async function finished(harness: Harness, task: string | null) {
  await expect
    .poll(() => harness.posthorn.tasks.get(task!).catch(() => null), PATIENTLY)
    .toMatchObject({ status: "finished" })
  await harness.quiet()
  return harness.posthorn.tasks.get(task!)
}

test("the preview says since when and why it is disabled, what waits and what it missed", async () => {
  const { harness, id, disabledAt } = await disabled()
  const { endpoints } = harness.posthorn
  const counts = { held: 3, heldIsLowerBound: false, missed: 2, missedIsLowerBound: false }
  expect(await endpoints.enablePreview("acme", id)).toEqual({
    disabled: true,
    disabledAt,
    disabledReason: "manual",
    ...counts,
  })
  expect(await endpoints.enable("acme", id)).toEqual({
    ...counts,
    disabledAt,
    disabledReason: "manual",
    discardTaskId: null,
    replayTaskId: null,
    endpoint: expect.objectContaining({ id, disabled: false, disabledAt: null }),
  })
  expect(await endpoints.enablePreview("acme", id)).toMatchObject({ disabled: false, held: 0, missed: 0 })
})

test("unless told otherwise, what waits is sent and what was missed is left", async () => {
  const { harness, id, held } = await disabled()
  await harness.posthorn.endpoints.enable("acme", id)
  await harness.published("delivery.delivered", 3)
  await harness.quiet()
  expect(received(harness).sort()).toEqual(held.sort())
})

test("a replay of an ordered endpoint comes after what waits, in the order of the messages", async () => {
  const { harness, id, held, missed } = await disabled({}, { ordered: true })
  const { replayTaskId } = await harness.posthorn.endpoints.enable("acme", id, { missed: "replay" })
  await harness.published("delivery.delivered", 5)
  expect(await finished(harness, replayTaskId)).toMatchObject({ type: "endpoint.replay", changed: 2 })
  expect(received(harness)).toEqual([...held, ...missed])
})

test("a discard ends what waits as cancelled, then enables the endpoint", async () => {
  const { harness, id } = await disabled()
  const { endpoints } = harness.posthorn
  const answer = await endpoints.enable("acme", id, { held: "discard" })
  expect(answer).toMatchObject({ held: 3, replayTaskId: null, endpoint: { disabled: true } })
  const task = await finished(harness, answer.discardTaskId)
  expect(task).toMatchObject({ type: "endpoint.enable", action: "enable", total: 3, changed: 3, data: null })
  expect(await statuses(harness)).toEqual([CANCELLED, CANCELLED, CANCELLED])
  const dead = await harness.published("delivery.dead", 3)
  expect(dead.map(({ reason }) => reason)).toEqual(["cancelled", "cancelled", "cancelled"])
  expect(await endpoints.get("acme", id)).toMatchObject({ disabled: false, disabledReason: null })
  const later = await harness.send({}, { eventType: "held" })
  await harness.published("delivery.delivered", 1)
  expect(received(harness)).toEqual([later])
})

test("a discard of more than one step leaves nothing, and takes nothing that comes later", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint({}, "/hook")
  const { endpoints } = harness.posthorn
  await endpoints.pause("acme", id)
  const messages = Array.from({ length: 450 }, (_, n) => ({ eventType: "held", payload: n }))
  await harness.posthorn.sendBatch("acme", messages)
  await endpoints.update("acme", id, { disabled: true })
  await endpoints.resume("acme", id)
  const { discardTaskId } = await endpoints.enable("acme", id, { held: "discard" })
  expect(await finished(harness, discardTaskId)).toMatchObject({ total: 450, done: 450, changed: 450 })
  const later = await harness.send()
  await harness.published("delivery.delivered", 1)
  expect(received(harness)).toEqual([later])
  expect(await harness.posthorn.stats()).toMatchObject({ dead: 450, delivered: 1, pending: 0 })
})

test("a discard with a replay sends only what was missed", async () => {
  const { harness, id, missed } = await disabled()
  const { endpoints } = harness.posthorn
  const answer = await endpoints.enable("acme", id, { held: "discard", missed: "replay" })
  await harness.published("delivery.delivered", 2)
  expect(await finished(harness, answer.discardTaskId)).toMatchObject({ data: null })
  expect(await finished(harness, answer.replayTaskId)).toMatchObject({ type: "endpoint.replay", changed: 2 })
  expect(received(harness).sort()).toEqual(missed.sort())
})

/** A store whose method breaks as if the process had ended there, until `mend` is called. */
function breaking(method: "enableEndpointIfDisabled" | "stepTaskIfCurrent", after: number) {
  let calls = 0
  let isBroken = true
  const { promise: broke, resolve } = Promise.withResolvers<void>()
  const wrapStore = (store: Store): Store => ({
    ...store,
    [method]: (...args: never[]) => {
      if (!isBroken || calls++ < after) return (store[method] as (...args: never[]) => unknown)(...args)
      resolve()
      return Promise.reject(new Error("the process ended here"))
    },
  })
  return {
    wrapStore,
    broke,
    mend: () => {
      isBroken = false
    },
  }
}

test.each([
  ["before the first delivery is cancelled", "stepTaskIfCurrent", 0],
  ["when all are cancelled and the endpoint is still disabled", "enableEndpointIfDisabled", 0],
  ["when the endpoint is enabled and the task not finished", "stepTaskIfCurrent", 1],
] as const)("after a crash %s, nothing that was to be discarded is sent", async (_when, method, after) => {
  const { wrapStore, broke, mend } = breaking(method, after)
  const { harness, id, missed } = await disabled({ wrapStore })
  const choice = { held: "discard", missed: "replay" } as const
  const { discardTaskId, replayTaskId } = await harness.posthorn.endpoints.enable("acme", id, choice)
  await broke
  mend()
  await harness.restart()
  await finished(harness, discardTaskId)
  await finished(harness, replayTaskId)
  await harness.quiet()
  expect(await statuses(harness)).toEqual([
    CANCELLED,
    CANCELLED,
    CANCELLED,
    ["delivered", null],
    ["delivered", null],
  ])
  expect(received(harness).sort()).toEqual(missed.sort())
})

test("a delivery whose request ends during the discard is discarded too", async () => {
  let harness: Harness | null = null
  let reads = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    async readTask(...args) {
      const rows = await store.readTask(...args)
      // As the settle of a request that was in flight when the endpoint was disabled.
      if (reads++ === 0)
        await harness!.sql("UPDATE webhook_deliveries SET status = 'failed', attempt_count = 1")
      return rows
    },
  })
  const made = await disabled({ wrapStore })
  harness = made.harness
  const { discardTaskId } = await harness.posthorn.endpoints.enable("acme", made.id, { held: "discard" })
  await finished(harness, discardTaskId)
  expect(await statuses(harness)).toEqual([CANCELLED, CANCELLED, CANCELLED])
  expect(received(harness)).toEqual([])
})

test("while a discard runs nobody enables the endpoint in another way; without the task it stays disabled", async () => {
  const { wrapStore, broke } = breaking("stepTaskIfCurrent", 0)
  const { harness, id } = await disabled({ wrapStore })
  const { endpoints, tasks } = harness.posthorn
  const { discardTaskId } = await endpoints.enable("acme", id, { held: "discard" })
  await broke
  const conflict = { code: "conflict", message: expect.stringContaining(discardTaskId!) }
  await expect(endpoints.enable("acme", id)).rejects.toMatchObject(conflict)
  await expect(endpoints.update("acme", id, { disabled: false })).rejects.toMatchObject(conflict)
  await tasks.cancel(discardTaskId!)
  expect(await endpoints.get("acme", id)).toMatchObject({ disabled: true })
  expect(await endpoints.update("acme", id, { disabled: false })).toMatchObject({ disabled: false })
})

test("only a disabled endpoint can be enabled, and only in words that exist", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const { endpoints } = harness.posthorn
  const conflict = { code: "conflict", message: `endpoint "${id}" is not disabled` }
  await expect(endpoints.enable("acme", id)).rejects.toMatchObject(conflict)
  await expect(endpoints.enable("acme", id, { held: "discard" })).rejects.toMatchObject(conflict)
  await expect(endpoints.enable("acme", "ep_none")).rejects.toMatchObject({ code: "not_found" })
  await expect(endpoints.enable("acme", id, { held: "burn" as never })).rejects.toMatchObject({
    field: "held",
  })
  await expect(endpoints.enable("acme", id, { missed: 1 as never })).rejects.toMatchObject({
    field: "missed",
  })
  await expect(endpoints.enable("acme", id, { all: true } as never)).rejects.toMatchObject({ field: "all" })
})

test("an endpoint that an older version disabled does not say since when, and cannot replay", async () => {
  const { harness, id } = await disabled()
  await harness.sql("UPDATE endpoints SET disabled_at = NULL, disabled_reason = NULL")
  const { endpoints } = harness.posthorn
  expect(await endpoints.enablePreview("acme", id)).toMatchObject({ held: 3, missed: null, disabledAt: null })
  await expect(endpoints.enable("acme", id, { missed: "replay" })).rejects.toMatchObject({ code: "conflict" })
  expect(await endpoints.enable("acme", id)).toMatchObject({ endpoint: { disabled: false } })
})
