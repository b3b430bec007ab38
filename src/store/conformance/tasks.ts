/** Tasks over deliveries: durable, step by step, each with its progress. */
import { describe, expect, test } from "vitest"
import type { TaskFilter } from "../store.ts"
import { NOW, newest, ORG, OTHER_ORG, sample } from "./samples.ts"
import { calledOff, revived, type SetUp } from "./stage.ts"

export function tasks(name: string, setUp: SetUp): void {
  describe(`${name}: tasks`, () => {
    test("a task revives matching deliveries step by step, and stores its progress", async () => {
      const { store, killOff, reopen } = await setUp()
      await killOff(5)
      const filter = { status: "dead" as const, undiscarded: true }
      const task = await store.createTask(sample.task({ filter, total: 5 }))
      expect(task).toMatchObject({ total: 5, done: 0, status: "running" })
      const rows = await store.readTask(task.id, 3)
      const cursor = rows.at(-1)!.seq
      const amendments = rows.map((row) => revived(row, NOW + 1))
      expect(await store.stepTaskIfCurrent(sample.step(task.id, { amendments, looked: 3, cursor }))).toEqual({
        amended: [true, true, true],
        added: [],
      })
      const again = await reopen()
      expect(await again.getTask(ORG, task.id)).toMatchObject({ done: 3, changed: 3, status: "running" })
      expect(await again.readTask(task.id, 9)).toHaveLength(2)
      // A step with an old cursor is not made again.
      expect(await again.stepTaskIfCurrent(sample.step(task.id))).toBeNull()
      await again.stepTaskIfCurrent(sample.step(task.id, { expectedCursor: cursor }))
      expect(await again.getTask(ORG, task.id)).toMatchObject({ status: "finished" })
      expect(await again.countByStatus({})).toMatchObject({ pending: 3, dead: 2 })
    })

    test("a task ignores newer deliveries", async () => {
      const { store, send } = await setUp()
      await send()
      const task = await store.createTask(sample.task({ action: "cancel", filter: { live: true } }))
      await send()
      expect(await store.readTask(task.id, 9)).toHaveLength(1)
    })

    test("a cancelled task changes nothing more", async () => {
      const { store, killOff } = await setUp()
      await killOff(2)
      const task = await store.createTask(sample.task({ filter: { status: "dead" } }))
      expect(await store.cancelTask(ORG, task.id, NOW)).toMatchObject({ status: "cancelled" })
      expect(await store.stepTaskIfCurrent(sample.step(task.id))).toBeNull()
      expect(await store.readTask(task.id, 9)).toEqual([])
    })

    test("a task keeps its type, filter and data", async () => {
      const { store, application } = await setUp()
      const given = sample.task({
        action: "replay",
        type: "endpoint.replay",
        filter: { appId: application.id, eventTypes: ["a", "b"], since: NOW },
        data: '{"endpointId":"ep_1"}',
        total: 3,
      })
      const task = await store.createTask(given)
      expect(task).toEqual({ ...given, seq: task.seq, upTo: task.upTo })
      expect(await store.getTask(ORG, task.id)).toEqual(task)
    })

    test("another tenant's task is not found", async () => {
      const { store } = await setUp()
      const task = await store.createTask(sample.task({}))
      expect(await store.getTask(OTHER_ORG, task.id)).toBeNull()
      expect(await store.listTasks(OTHER_ORG, newest(9))).toEqual([])
      await expect(store.cancelTask(OTHER_ORG, task.id, NOW)).rejects.toMatchObject({ code: "not_found" })
      expect(await store.getTask(ORG, task.id)).toMatchObject({ status: "running" })
    })

    test("tasks are listed by status and by type", async () => {
      const { store } = await setUp()
      const recover = await store.createTask(sample.task({ type: "endpoint.recover" }))
      const cancelled = await store.createTask(sample.task({ type: "endpoint.recover" }))
      await store.cancelTask(ORG, cancelled.id, NOW)
      const other = await store.createTask(sample.task({ type: "endpoint.replay" }))
      const ids = async (filter: TaskFilter) =>
        (await store.listTasks(ORG, newest(9), filter)).map(({ id }) => id)
      expect(await ids({})).toEqual([other.id, cancelled.id, recover.id])
      expect(await ids({ status: "running" })).toEqual([other.id, recover.id])
      expect(await ids({ types: ["endpoint.recover"] })).toEqual([cancelled.id, recover.id])
      expect(await ids({ types: ["endpoint.replay", "endpoint.recover"] })).toHaveLength(3)
      expect(await ids({ types: [] })).toEqual([])
      expect(await ids({ status: "cancelled", types: ["endpoint.replay"] })).toEqual([])
    })

    test("a report is created as finished", async () => {
      const { store } = await setUp()
      const report = await store.createTask(
        sample.task({ action: "report", status: "finished", data: '{"n":1}' }),
      )
      expect(await store.getTask(ORG, report.id)).toMatchObject({ status: "finished", data: '{"n":1}' })
      expect(await store.listRunningTasks(9)).toEqual([])
    })

    test("the running tasks of every tenant are found, the oldest first", async () => {
      const { store } = await setUp()
      const [first, cancelled, finished, second, third] = [
        await store.createTask(sample.task({})),
        await store.createTask(sample.task({})),
        await store.createTask(sample.task({})),
        await store.createTask(sample.task({ orgId: OTHER_ORG })),
        await store.createTask(sample.task({})),
      ]
      await store.cancelTask(ORG, cancelled.id, NOW)
      await store.stepTaskIfCurrent(sample.step(finished.id))
      const ids = async (limit: number) => (await store.listRunningTasks(limit)).map(({ id }) => id)
      expect(await ids(9)).toEqual([first.id, second.id, third.id])
      expect(await ids(2)).toEqual([first.id, second.id])
    })

    test.each([
      ["endpointId", "cancel"],
      ["appId", "cancel"],
      ["endpointId", "enable"],
    ] as const)("a task that cancels everything by %s (%s) reads each delivery once, and no other", async (by, action) => {
      const { store, application, endpoint, send, attemptAll } = await setUp()
      const theirs = sample.application()
      await store.createApplication(theirs)
      await store.createEndpoint(sample.endpoint(theirs.id))
      await store.acceptMany([sample.message(theirs.id)])
      await send()
      await attemptAll(200)
      const sendThree = async () => {
        for (const priority of ["low", "high", "normal"] as const) await send({ priority })
      }
      await sendThree()
      await attemptAll(500)
      await sendThree()
      await store.deleteEndpoint(endpoint.id, sample.task({}))
      const filter = { [by]: by === "appId" ? application.id : endpoint.id, live: true }
      expect(await store.countDeliveries(filter)).toBe(6)
      const { id } = await store.createTask(sample.task({ action, filter }))
      const cancelled = new Set<string>()
      for (let expectedCursor: number | null = 0; expectedCursor !== null; ) {
        const rows = await store.readTask(id, 4)
        for (const row of rows) cancelled.add(row.id)
        const cursor = rows.length < 4 ? null : rows.at(-1)!.seq
        const amendments = rows.map((row) => calledOff(row))
        const looked = rows.length
        await store.stepTaskIfCurrent(sample.step(id, { amendments, looked, expectedCursor, cursor }))
        expectedCursor = cursor
      }
      expect(cancelled.size).toBe(6)
      expect(await store.getTask(ORG, id)).toMatchObject({ status: "finished", done: 6, changed: 6 })
      expect(await store.countByStatus({})).toEqual({
        pending: 1,
        failed: 0,
        delivered: 1,
        dead: 6,
        calledOff: 6,
      })
    })

    test("an endpoint is enabled together with the tasks that follow, once", async () => {
      const { store, application, endpoint, send } = await setUp()
      await send()
      await store.updateEndpoint(endpoint.id, { disabled: true }, NOW)
      const { id: appId } = application
      const filter = { appId, endpointId: endpoint.id, since: NOW }
      const [first, again] = [0, 1].map(() => sample.task({ action: "replay", filter }))
      const enabled = await store.enableEndpointIfDisabled(endpoint.id, NOW + 1, [first!])
      expect(enabled).toMatchObject({ disabled: false, disabledAt: null, resumedAt: NOW + 1 })
      expect(await store.readTaskMessages(first!.id, 9)).toHaveLength(1)
      await expect(store.enableEndpointIfDisabled(endpoint.id, NOW + 2, [again!])).rejects.toMatchObject({
        code: "conflict",
        message: `endpoint "${endpoint.id}" is not disabled`,
      })
      expect(await store.getTask(ORG, again!.id)).toBeNull()
      await expect(store.enableEndpointIfDisabled("ep_none", NOW, [again!])).rejects.toMatchObject({
        code: "not_found",
      })
    })

    test("deleting an application or an endpoint starts the given task", async () => {
      const { store, application, endpoint, send } = await setUp()
      await send()
      const ofEndpoint = sample.task({ action: "cancel", filter: { endpointId: endpoint.id, live: true } })
      await store.deleteEndpoint(endpoint.id, ofEndpoint)
      const ofApplication = sample.task({ action: "cancel", filter: { appId: application.id, live: true } })
      await store.deleteApplication(application.id, ofApplication)
      for (const { id } of [ofEndpoint, ofApplication]) expect(await store.readTask(id, 9)).toHaveLength(1)
      expect(await store.getEndpoint(application.id, endpoint.id)).toBeNull()
      expect(await store.getApplication(ORG, application.id)).toBeNull()
    })
  })
}
