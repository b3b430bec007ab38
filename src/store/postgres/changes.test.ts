import { expect, test } from "vitest"
import { connect, fetchOf, NOW, openStore, stage, waiting } from "../../../test/support/postgres-store.ts"
import { cancel, revive } from "../../core/operate.ts"
import { PRESETS } from "../../core/presets.ts"
import { AT, lanesOf, newest, sample, settlement } from "../conformance.ts"
import type { Delivery } from "../store.ts"
import { DAY_MS } from "./partitions.ts"

const page = newest(1000)
const expectedOf = ({ seq, status, attemptCount }: Delivery) => ({
  seq,
  expectedStatus: status,
  expectedAttemptCount: attemptCount,
})

test("a reset typed as SQL clears the columns of the finished row, and wakes the lane", async () => {
  const { query, endpoint, send, attempt } = await stage()
  await send()
  await attempt(500, NOW + DAY_MS)
  await query("UPDATE webhook_deliveries SET discarded_at = 6, stalls = 3")
  await query("DELETE FROM lane_wakes")
  await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'")
  expect(await query("SELECT *, tableoid::regclass AS lies_in FROM webhook_deliveries")).toMatchObject([
    {
      status: "pending",
      attempt_count: 0,
      dead_reason: null,
      next_retry_at: null,
      age_from: null,
      purge_at: null,
      discarded_at: null,
      stalls: 0,
      error_detail: "HTTP 500",
      lies_in: "webhook_deliveries_live",
    },
  ])
  expect(await query("SELECT lane_id, due_at::int FROM lane_wakes")).toEqual([
    { lane_id: endpoint.id, due_at: 0 },
  ])
})

test("a reset delivery takes the order of its endpoint", async () => {
  const { store, query, endpoint, send, attempt } = await stage()
  await send()
  await attempt(500)
  await store.updateEndpoint(endpoint.id, { ordered: true }, NOW)
  await query("UPDATE webhook_deliveries SET status = 'pending', attempt_count = 0 WHERE status = 'dead'")
  expect(await query("SELECT rank FROM webhook_deliveries")).toEqual([{ rank: 0 }])
})

test("a delivery that was accepted while its endpoint became ordered is ordered, too", async () => {
  const { store, client, application, endpoint } = await stage()
  const [first, second] = [sample.message(application.id), sample.message(application.id)]
  await client.query("BEGIN")
  await store.acceptMany([first], client)
  await store.updateEndpoint(endpoint.id, { ordered: true }, NOW)
  await client.query("COMMIT")
  await store.acceptMany([second])
  const work = await lanesOf(store).fetch(fetchOf(endpoint), NOW)
  expect(work.deliveries.map(({ messageId }) => messageId)).toEqual([first.id])
})

test("a delivery that was ended by SQL can be retried", async () => {
  const { store, query, send } = await stage()
  await send()
  await query("UPDATE webhook_deliveries SET status = 'dead'")
  const [row] = await store.listDeliveries({ status: "dead" }, page)
  expect(await store.purge(NOW + 1000 * DAY_MS, 10)).toBe(0)
  expect(await store.amendIfUnchanged([{ ...expectedOf(row!), change: revive(row!, NOW + 1) }])).toEqual([
    true,
  ])
  expect(await store.countByStatus({})).toMatchObject({ pending: 1, dead: 0 })
})

test("amendments of every kind run in one call, each with its result", async () => {
  const { store, send, attempt } = await stage()
  await send(2)
  const [first, second] = await attempt(500)
  await send(2)
  const [waiting, other] = await store.listDeliveries({ live: true }, page)
  const change = cancel(waiting!, PRESETS.standard, NOW)
  const stale = { expectedAttemptCount: 7 }
  const applied = await store.amendIfUnchanged([
    { ...expectedOf(second!), change: { discardedAt: NOW } },
    { ...expectedOf(waiting!), change },
    { ...expectedOf(other!), ...stale, change },
    { ...expectedOf(first!), change: revive(first!, NOW + 1) },
    { ...expectedOf(second!), change: { discardedAt: NOW } },
    { ...expectedOf(waiting!), change },
  ])
  expect(applied).toEqual([true, true, false, true, false, false])
  expect(await store.countByStatus({})).toEqual({
    pending: 2,
    failed: 0,
    delivered: 0,
    dead: 2,
    calledOff: 1,
  })
})

test("a called-off delivery takes its attempts to its partition", async () => {
  const { store, query, send, fetchAndFail } = await withFailing()
  await send()
  await fetchAndFail()
  const [row] = await store.listDeliveries({ live: true }, page)
  const change = cancel(row!, PRESETS.standard, NOW)
  expect(await store.amendIfUnchanged([{ ...expectedOf(row!), change }])).toEqual([true])
  const [lies] = await query("SELECT purge_day, purge_at FROM webhook_deliveries")
  expect(lies.purge_day).toBe(Math.ceil(Number(lies.purge_at) / DAY_MS))
  expect(await query("SELECT purge_day FROM attempts")).toEqual([{ purge_day: lies.purge_day }])
  // The delivery, and the roll-up of its attempt.
  expect(await store.purge(lies.purge_day * DAY_MS, 10)).toBe(2)
  expect(await store.listAttempts({}, page)).toEqual([])
})

/** A stage whose attempts fail and are retried. */
async function withFailing() {
  const staged = await stage()
  const { store, endpoint } = staged
  const fetchAndFail = async () => {
    const work = await lanesOf(store).fetch(fetchOf(endpoint), NOW)
    await lanesOf(store).settle(work.deliveries.map((one) => settlement(endpoint.id, 1, one, 500)))
  }
  return { ...staged, fetchAndFail }
}

test("two processes that change one endpoint at once both keep their change", async () => {
  const { url, store, application, endpoint } = await stage()
  const other = await openStore(url)
  await Promise.all([
    store.updateEndpoint(endpoint.id, { description: "a" }, NOW),
    other.updateEndpoint(endpoint.id, { paused: true }, NOW),
    store.updateEndpoint(endpoint.id, { rateLimit: 5 }, NOW),
    other.updateEndpoint(endpoint.id, { headers: { x: "y" } }, NOW),
  ])
  expect(await store.getEndpoint(application.id, endpoint.id)).toMatchObject({
    description: "a",
    paused: true,
    rateLimit: 5,
    headers: { x: "y" },
    version: 5,
  })
})

test("of two updates of one version, one is refused", async () => {
  const { url, store, endpoint } = await stage()
  const other = await openStore(url)
  const results = await Promise.allSettled(
    [store, other].map((one) => one.updateEndpointIfVersion(endpoint.id, { paused: true }, NOW, 1)),
  )
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
})

test("every change to an endpoint, its policy or its application wakes its lane", async () => {
  const { store, query, application, endpoint } = await stage()
  const wakes = async (work: () => Promise<unknown>) => {
    await query("DELETE FROM lane_wakes")
    await work()
    return query("SELECT lane_id, due_at::int FROM lane_wakes")
  }
  const woken = [{ lane_id: endpoint.id, due_at: 0 }]
  const policy = { orgId: application.orgId, name: "mine", policy: "{}", updatedAt: NOW }
  await store.putPolicy(policy)
  expect(await wakes(() => store.updateEndpoint(endpoint.id, { retryName: "mine" }, NOW))).toEqual(woken)
  expect(await wakes(() => store.putPolicy(policy))).toEqual(woken)
  expect(await wakes(() => store.updateApplication(application.id, { rateLimit: 5 }, NOW))).toEqual(woken)
  expect(await wakes(() => store.updateApplication(application.id, { name: "Other" }, NOW))).toEqual([])
  await store.updateEndpoint(endpoint.id, { disabled: true }, NOW)
  expect(await wakes(() => store.enableEndpointIfDisabled(endpoint.id, NOW, []))).toEqual(woken)
  const task = () => sample.task({ action: "cancel", filter: { endpointId: endpoint.id, live: true } })
  expect(await wakes(() => store.deleteEndpoint(endpoint.id, task()))).toEqual(woken)
  const second = sample.endpoint(application.id)
  await store.createEndpoint(second)
  expect(await wakes(() => store.deleteApplication(application.id, task()))).toEqual([
    { lane_id: second.id, due_at: 0 },
  ])
  await expect(store.updateEndpoint(second.id, { paused: true }, NOW)).rejects.toMatchObject({
    code: "not_found",
  })
  await expect(store.deleteEndpoint(second.id, task())).rejects.toMatchObject({ code: "not_found" })
  expect(await store.listRunningTasks(10)).toHaveLength(2)
})

test("a policy is not deleted while an endpoint begins to use it", async () => {
  const { url, store, client, application } = await stage()
  const watcher = await connect(url)
  const { orgId } = application
  await store.putPolicy({ orgId, name: "mine", policy: "{}", updatedAt: NOW })
  await client.query("BEGIN")
  await client.query("LOCK TABLE lanes IN ACCESS EXCLUSIVE MODE")
  const creating = store.createEndpoint(sample.endpoint(application.id, { retryName: "mine" }))
  await waiting(watcher, 1)
  const deleting = store.deletePolicyIfUnused(orgId, "mine")
  await waiting(watcher, 2)
  await client.query("COMMIT")
  await creating
  await expect(deleting).rejects.toMatchObject({ code: "conflict" })
})

test("of many processes that make the same step, one succeeds", async () => {
  const { url, store, send, attempt } = await stage()
  const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(url)))
  await send(6)
  await attempt(500)
  const task = await store.createTask(sample.task({ filter: { status: "dead" }, total: 6 }))
  const rows = await store.readTask(task.id, 4)
  const step = {
    taskId: task.id,
    expectedCursor: 0,
    amendments: rows.map((row) => ({ ...expectedOf(row), change: revive(row, NOW + 1) })),
    additions: [],
    expunged: [],
    looked: 4,
    cursor: rows.at(-1)!.seq,
    at: AT,
  }
  const results = await Promise.all(stores.map((one) => one.stepTaskIfCurrent(step)))
  expect(results.filter((result) => result !== null)).toEqual([
    { amended: [true, true, true, true], added: [] },
  ])
  expect(await store.getTask(task.orgId, task.id)).toMatchObject({ done: 4, changed: 4, cursor: step.cursor })
})

test("a task ignores newer deliveries", async () => {
  const { store, send } = await stage()
  await send(2)
  const task = await store.createTask(sample.task({ action: "cancel", filter: { live: true } }))
  await send(2)
  expect(await store.readTask(task.id, 10)).toHaveLength(2)
})

test("every change works while a newer program adds columns", async () => {
  const { store, query, application, endpoint } = await stage()
  const update = () => store.updateEndpoint(endpoint.id, { description: "changed" }, NOW)
  const task = () => store.createTask(sample.task({ filter: { endpointId: endpoint.id } }))
  const before = [
    await update(),
    await store.updateApplication(application.id, { name: "A" }, NOW),
    await task(),
  ]
  expect(before).toHaveLength(3)
  for (const table of [
    "endpoints",
    "applications",
    "policies",
    "entries",
    "messages",
    "tasks",
    "webhook_deliveries",
    "attempts",
  ])
    await query(`ALTER TABLE ${table} ADD COLUMN newer text`)
  for (let n = 0; n < 5; n++) {
    await update()
    await store.updateApplication(application.id, { name: "B" }, NOW)
    await task()
    expect(await store.acceptMany([sample.message(application.id)])).toMatchObject([{ matched: 1 }])
  }
})
