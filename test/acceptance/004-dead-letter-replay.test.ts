/** Seed 004, phase 6: the dead letter queue and its replay tools, which the seed had only planned. */
import { expect, test } from "vitest"
import { Harness, type HarnessOptions } from "../support/harness.ts"

/** Dead letters of two subscribers, so many for each; both receivers are well again. */
async function startWithDead(
  count: number,
  options: HarnessOptions = {},
): Promise<{ harness: Harness; a: string }> {
  const harness = await Harness.start(options)
  const a = await harness.endpoint({ retry: "jobs", eventTypes: ["a"] }, "/a")
  await harness.endpoint({ retry: "jobs", eventTypes: ["b"] }, "/b")
  for (const path of ["/a", "/b"]) harness.receiver.always(path, 500)
  for (const eventType of ["a", "b"]) {
    const batch = Array.from({ length: count }, (_, n) => ({ eventType, payload: { n }, maxAttempts: 1 }))
    await harness.posthorn.sendBatch("acme", batch)
  }
  await harness.published("delivery.dead", 2 * count)
  for (const path of ["/a", "/b"]) harness.receiver.always(path, 200)
  harness.receiver.clear()
  return { harness, a }
}

/** The store answers each poll after the step that it is running. */
async function whenFinished(harness: Harness, taskId: string): Promise<void> {
  while ((await harness.posthorn.tasks.get(taskId)).status === "running") {}
}

test("a delivery is in the dead letter queue after its last attempt, and leaves it when it is replayed", async () => {
  const { harness, a } = await startWithDead(1)
  const { data } = await harness.posthorn.dead.list({ endpoint: a })
  expect(data).toMatchObject([
    { status: "dead", deadReason: "exhausted", errorDetail: "HTTP 500: answer 500" },
  ])
  const replayed = await harness.posthorn.dead.retry(data[0]!.id)
  expect(replayed).toMatchObject({ id: data[0]!.id, deadReason: null })
  await harness.published("delivery.delivered", 1)
  expect(await harness.posthorn.dead.list({ endpoint: a })).toMatchObject({ data: [] })
  expect(harness.receiver.to("/a").map(({ id }) => id)).toEqual([data[0]!.messageId])
  expect(await harness.posthorn.dead.count()).toBe(1)
})

test("a replay starts at attempt 0 and has all its attempts again", async () => {
  const { harness, a } = await startWithDead(1)
  harness.receiver.always("/a", 500)
  const { data } = await harness.posthorn.dead.list({ endpoint: a })
  await harness.sql("UPDATE webhook_deliveries SET max_attempts = NULL WHERE id = ?", data[0]!.id)
  await harness.posthorn.dead.retry(data[0]!.id)
  await harness.published("delivery.attempt", 3)
  for (const seconds of [1, 5, 30, 120, 600]) await harness.attemptAfter(seconds * 1000)
  expect(await harness.published("delivery.dead", 3)).toHaveLength(3)
  expect(harness.receiver.to("/a")).toHaveLength(6)
})

test("a replay of many has a preview count, takes what fits its filter, and says when it has finished", async () => {
  const { harness, a } = await startWithDead(5)
  const { dead, tasks } = harness.posthorn
  expect(await dead.count()).toBe(10)
  expect(await dead.count({ endpoint: a, deadReason: "exhausted" })).toBe(5)
  expect(await dead.count({ endpoint: a, deadReason: "rejected" })).toBe(0)
  const task = await dead.retryMany({ endpoint: a, deadReason: "exhausted" })
  expect(task).toMatchObject({ action: "retry", total: 5 })
  await harness.published("delivery.delivered", 5)
  await harness.quiet()
  expect(await tasks.get(task.id)).toMatchObject({ status: "finished", total: 5, done: 5, changed: 5 })
  expect(harness.receiver.to("/b")).toHaveLength(0)
  expect(await dead.count()).toBe(5)
})

test("a replay of many shows its progress and can be cancelled; what it has done stays done", async () => {
  let firstStepDone = () => {}
  const firstStep = new Promise<void>((resolve) => {
    firstStepDone = resolve
  })
  let goOn = () => {}
  const cancelled = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const { harness, a } = await startWithDead(450, {
    // The store is the real one; the replay only waits after each step until the test has cancelled it.
    wrapStore: (store) => {
      const stepTaskIfCurrent: typeof store.stepTaskIfCurrent = async (step) => {
        const applied = await store.stepTaskIfCurrent(step)
        firstStepDone()
        await cancelled
        return applied
      }
      return new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name)
          return name === "stepTaskIfCurrent"
            ? stepTaskIfCurrent
            : typeof value === "function"
              ? value.bind(target)
              : value
        },
      })
    },
  })
  const { dead, tasks } = harness.posthorn
  const { id } = await dead.retryMany({ endpoint: a })
  await firstStep
  const progress = await tasks.get(id)
  expect(progress).toMatchObject({ status: "running", total: 450 })
  expect(progress.done).toBeGreaterThan(0)
  expect(progress.done).toBeLessThan(450)
  await tasks.cancel(id)
  goOn()
  await harness.published("delivery.delivered", progress.done)
  await harness.quiet()
  expect(await tasks.get(id)).toMatchObject({
    status: "cancelled",
    done: progress.done,
    changed: progress.done,
  })
  expect(await dead.count({ endpoint: a })).toBe(450 - progress.done)
  expect(harness.receiver.to("/a")).toHaveLength(progress.done)

  await dead.retryMany({ endpoint: a })
  await harness.published("delivery.delivered", 450)
  expect(await dead.count({ endpoint: a })).toBe(0)
})

test("a replay of many is durable: one that was asked for before a restart is done after it", async () => {
  const { harness, a } = await startWithDead(5)
  await harness.restart({ deliver: false })
  const task = await harness.posthorn.dead.retryMany({ endpoint: a })
  expect(await harness.posthorn.tasks.get(task.id)).toMatchObject({ status: "running", total: 5, done: 0 })
  await harness.restart({ deliver: true })
  await harness.published("delivery.delivered", 5)
  expect(await harness.posthorn.tasks.get(task.id)).toMatchObject({ status: "finished", done: 5, changed: 5 })
})

test("a discarded dead letter is no longer listed nor replayed, but its record stays", async () => {
  const { harness, a } = await startWithDead(2)
  const { dead, deliveries, tasks } = harness.posthorn
  const [first, second] = (await dead.list({ endpoint: a })).data
  await dead.discard(first!.id)
  expect((await dead.list({ endpoint: a })).data.map(({ id }) => id)).toEqual([second!.id])
  expect(await deliveries.get(first!.id)).toMatchObject({
    status: "dead",
    deadReason: "exhausted",
    discardedAt: new Date(harness.clock.now()),
  })
  const task = await dead.retryMany({ endpoint: a })
  await harness.published("delivery.delivered", 1)
  await harness.quiet()
  expect(await tasks.get(task.id)).toMatchObject({ total: 1, changed: 1 })
  expect(harness.receiver.to("/a").map(({ id }) => id)).toEqual([second!.messageId])
})

test("many dead letters are discarded by a filter", async () => {
  const { harness, a } = await startWithDead(3)
  const task = await harness.posthorn.dead.discardMany({ endpoint: a })
  await whenFinished(harness, task.id)
  expect(await harness.posthorn.dead.count({ endpoint: a })).toBe(0)
  expect(await harness.posthorn.dead.count()).toBe(3)
  expect(await harness.posthorn.stats()).toMatchObject({ dead: 6 })
})
