/** Svix's client and our tasks. */
import { BackgroundTaskStatus, BackgroundTaskType, Ordering } from "svix"
import { expect, test } from "vitest"
import { refusal, svixFor } from "../support/sdk.ts"
import { ApiServer } from "../support/server.ts"

const SINCE = new Date(0)

/** Nobody delivers, so that tasks stay as they are. */
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
  await server.call("POST", `/background-task/${replayed[1]}/cancel`)
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
  for (let i = 0; i < 2; i++)
    expect(await server.call("POST", `/background-task/${id}/cancel`)).toMatchObject(cancelled)
  expect(await svix.backgroundTask.get(id)).toMatchObject(cancelled.body)
  const { id: report } = await svix.statistics.aggregateEventTypes()
  expect((await server.call("POST", `/background-task/${report}/cancel`)).body.status).toBe("finished")
})

test("a task of nobody's, or of another tenant's, is not there", async () => {
  const { server, replay } = await start()
  const id = await replay()
  const { token } = await server.posthorn.tenant("org_other").keys.create({ name: "x", scope: "admin" })
  const other = svixFor(server, token)
  for (const one of [id, "qtask_nobody"])
    expect(await refusal(other.backgroundTask.get(one))).toMatchObject({ status: 404 })
  expect((await server.call("POST", `/background-task/${id}/cancel`, { key: token })).status).toBe(404)
  expect((await other.backgroundTask.list()).data).toEqual([])
})
