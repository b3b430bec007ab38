/** Svix's client and our tasks. */
import { BackgroundTaskStatus, BackgroundTaskType, Ordering } from "svix"
import { expect, onTestFinished, test } from "vitest"
import { Receiver } from "../../support/receiver.ts"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const SINCE = new Date(0)

/** Without a worker, so that tasks stay as they are. */
async function start() {
  const server = await ApiServer.start({ options: { deliver: false } })
  const svix = svixFor(server)
  await svix.application.create({ name: "Acme", uid: "acme" })
  await svix.endpoint.create("acme", { url: "https://example.com/hook", uid: "hook" })
  const replay = async () => (await svix.endpoint.bulkReplay("acme", "hook", { since: SINCE })).id
  return { server, svix, replay }
}

test("tasks are listed, the newest first, by status and by kind", async () => {
  const { server, svix, replay } = await start()
  const replayed = [await replay(), await replay(), await replay()]
  const missing = (await svix.endpoint.replayMissing("acme", "hook", { since: SINCE })).id
  const list = async (options = {}) => (await svix.backgroundTask.list(options)).data.map(({ id }) => id)
  expect(await list()).toEqual([missing, ...[...replayed].reverse()])
  expect(await list({ order: Ordering.Ascending })).toEqual([...replayed, missing])
  expect(await list({ task: BackgroundTaskType.EndpointReplay })).toEqual([missing])
  await server.call("POST", `/task/${replayed[1]}/cancel`)
  expect(await list({ status: BackgroundTaskStatus.Failed })).toEqual([replayed[1]])
  expect(await list({ status: BackgroundTaskStatus.Running })).toEqual([missing, replayed[2], replayed[0]])
  expect(await list({ status: BackgroundTaskStatus.Finished })).toEqual([])
  const first = await svix.backgroundTask.list({ limit: 3 })
  const second = await svix.backgroundTask.list({ limit: 3, iterator: first.iterator! })
  expect([second.data.map(({ id }) => id), second.done]).toEqual([[replayed[0]], true])
  const back = await svix.backgroundTask.list({ limit: 3, iterator: second.prevIterator! })
  expect(back.data).toEqual(first.data)
})

test("a task is read and cancelled; what is over stays as it is", async () => {
  const { server, svix, replay } = await start()
  const id = await replay()
  const task = await svix.backgroundTask.get(id)
  expect(task).toMatchObject({
    id,
    status: "running",
    task: "endpoint.bulk-replay",
    data: { total: 0, done: 0, changed: 0 },
  })
  expect(task.updatedAt).toBeInstanceOf(Date)
  const cancelled = { status: 200, body: { id, status: "failed", data: { cancelled: true } } }
  for (let i = 0; i < 2; i++) expect(await server.call("POST", `/task/${id}/cancel`)).toMatchObject(cancelled)
  expect(await svix.backgroundTask.get(id)).toMatchObject(cancelled.body)
  const { id: report } = await svix.statistics.aggregateEventTypes()
  expect((await server.call("POST", `/task/${report}/cancel`)).body.status).toBe("finished")
})

test("tasks of our own kinds are in a list of their own: Svix's clients cannot read them", async () => {
  const { server, svix, replay } = await start()
  const replayed = await replay()
  await svix.endpoint.create("acme", { url: "https://example.com/hook", uid: "other" })
  const until = { createdBefore: new Date() }
  await server.call("POST", "/app/acme/endpoint/other/cancel-msgs", { body: until })
  await svix.endpoint.delete("acme", "other")
  await svix.application.create({ name: "Gone", uid: "gone" })
  await svix.application.delete("gone")
  const retried = (await server.call("POST", "/dead-letter/retry", { body: {} })).body.id
  const discarded = (await server.call("POST", "/dead-letter/discard", { body: {} })).body.id
  const list = async (path: string) => (await server.call("GET", path)).body.data
  const kinds = (await list("/task")).map(({ task }: { task: string }) => task)
  expect(kinds).toEqual([
    "dead.discard",
    "dead.retry",
    "application.delete",
    "endpoint.delete",
    "endpoint.cancel",
    "endpoint.bulk-replay",
  ])
  expect((await list("/task?task=dead.retry")).map(({ id }: { id: string }) => id)).toEqual([retried])
  expect((await svix.backgroundTask.list()).data.map(({ id }) => id)).toEqual([replayed])
  expect(await server.call("GET", "/background-task?task=dead.retry")).toMatchObject({ status: 422 })
  for (const id of [retried, discarded]) {
    expect(await refusal(svix.backgroundTask.get(id))).toMatchObject({ status: 404 })
    expect(await server.call("GET", `/task/${id}`)).toMatchObject({ status: 200, body: { id } })
  }
})

test("only the end of a task of Svix's kinds is told by operational webhook", async () => {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const server = await ApiServer.start()
  const svix = svixFor(server)
  await svix.operationalWebhook.endpoint.create({
    url: receiver.url("/operations"),
    eventTypes: ["background_task.finished"],
  })
  await svix.application.create({ name: "Acme", uid: "acme" })
  for (const uid of ["hook", "gone"])
    await svix.endpoint.create("acme", { url: "https://example.com/hook", uid, disabled: uid === "gone" })
  await svix.endpoint.delete("acme", "gone")
  const ours = async () => (await server.call("GET", "/task?task=endpoint.delete")).body.data
  await expect.poll(ours).toMatchObject([{ status: "finished" }])
  const { id } = await svix.endpoint.recover("acme", "hook", { since: new Date(Date.now() - 60_000) })
  const [told] = await receiver.arrived("/operations", 1)
  expect(JSON.parse(`${told!.body}`)).toMatchObject({ data: { taskId: id, task: "endpoint.recover" } })
})

test("a task of nobody's, or of another tenant's, is not there", async () => {
  const { server, replay } = await start()
  const id = await replay()
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "x", scope: "admin" })
  const other = svixFor(server, token)
  for (const one of [id, "qtask_nobody"])
    expect(await refusal(other.backgroundTask.get(one))).toMatchObject({ status: 404 })
  expect((await server.call("POST", `/task/${id}/cancel`, { key: token })).status).toBe(404)
  expect((await other.backgroundTask.list()).data).toEqual([])
})
