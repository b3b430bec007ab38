import { expect, test } from "vitest"
import { NOW, plansOf, stage } from "../../../test/support/postgres-store.ts"
import { revive } from "../../core/operate.ts"
import { sample } from "../conformance.ts"
import type { Delivery } from "../store.ts"
import { amendWithin } from "./amend.ts"
import { DAY_MS } from "./partitions.ts"

const page = { limit: 50, before: null }
const DAYS = [0, 1, 2].map((day) => Math.ceil(NOW / DAY_MS) + day)
/** The table that is made ahead is empty, and read whole. */
const WHOLE_DAY = new RegExp(`Seq Scan on \\w+_(live|${DAYS.join("|")})`)

/** Three days of finished deliveries, one in fifty of them dead, and a backlog that belongs to one of a hundred endpoints. */
async function fill() {
  const staged = await stage()
  const { store, query } = staged
  await store.partitions.ensureDays(DAYS)
  await query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, status, received_at, purge_day)
     SELECT 'dlv_' || i, 'app_' || i % 10, 'ep_' || i % 100, 'msg_' || i, 't', 'u',
            CASE WHEN i % 50 = 0 THEN 'dead' ELSE 'delivered' END, i, $1::int + i % 3
       FROM generate_series(1, 15000) AS i`,
    [DAYS[0]],
  )
  await query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, received_at)
     SELECT 'dlv_live_' || i, 'app_1', CASE WHEN i % 10 > 0 THEN 'ep_1' ELSE 'ep_' || i / 10 % 100 END, 'msg_live_' || i, 't', 'u', i
       FROM generate_series(1, 15000) AS i`,
  )
  await query(
    `INSERT INTO attempts (id, delivery_id, webhook_id, message_id, attempt_number, status, url, response_truncated, started_at,
                           duration_ms, purge_day)
     SELECT 'atmpt_' || seq, id, webhook_id, message_id, 1, 'failed', 'u', false, 0, 0,
            CASE WHEN status IN ('pending', 'failed') THEN 0 ELSE purge_day END
       FROM webhook_deliveries`,
  )
  await query("ANALYZE")
  const plan = async (work: () => Promise<unknown>) => (await plansOf(staged.url, store, work)).join("\n")
  return { ...staged, plan }
}

test("lists use an index of every table they look at, and look at no other", async () => {
  const { store, plan } = await fill()
  const list = (filter: Parameters<typeof store.listDeliveries>[0]) =>
    plan(() => store.listDeliveries(filter, page))

  const all = await list({})
  expect(all).toContain("deliveries_live_seq")
  for (const day of DAYS) expect(all).toContain(`webhook_deliveries_done_${day}_seq_idx`)

  const ofSmall = await list({ endpointId: "ep_5" })
  expect(ofSmall).toContain("deliveries_live_due")
  for (const day of DAYS) expect(ofSmall).toContain(`webhook_deliveries_done_${day}_webhook_id_seq_idx`)
  expect(await list({ endpointId: "ep_1", live: true })).toContain("Scan Backward using deliveries_live_seq")

  const ofMessage = await list({ messageId: "msg_5" })
  for (const day of DAYS) expect(ofMessage).toContain(`webhook_deliveries_done_${day}_message_id_idx`)

  const live = await list({ status: "failed", endpointId: "ep_5" })
  expect(live).not.toContain("webhook_deliveries_done")
  const dead = await list({ status: "dead", appId: "app_0", undiscarded: true })
  expect(dead).not.toContain("webhook_deliveries_live")
  for (const day of DAYS) expect(dead).toContain(`webhook_deliveries_done_${day}_app_id_seq_idx`)

  for (const text of [all, ofSmall, ofMessage, live, dead])
    for (const day of DAYS) expect(text).not.toContain(`Seq Scan on webhook_deliveries_done_${day}`)
  for (const text of [all, ofSmall, ofMessage, live])
    expect(text).not.toContain("Seq Scan on webhook_deliveries_live")
})

test("one delivery, and the attempts of one, of an endpoint and of a message are found by indexes", async () => {
  const { store, plan } = await fill()
  const plans = [
    await plan(() => store.getDelivery("dlv_77")),
    await plan(() => store.listAttempts({ deliveryId: "dlv_77" }, page)),
    await plan(() => store.listAttempts({ messageId: "msg_77" }, page)),
    await plan(() => store.listAttempts({ endpointId: "ep_7" }, page)),
  ]
  for (const text of plans) {
    expect(text).toContain("Index Scan")
    expect(text).not.toMatch(WHOLE_DAY)
  }
})

test("a task over the live reads no finished table, and each kind of amendment only where it belongs", async () => {
  const { store, plan } = await fill()
  const filter = { endpointId: "ep_1", live: true }
  const task = await store.createTask(sample.task({ action: "cancel", filter }))
  const reading = await plan(() => store.readTask(task.id, 200))
  expect(reading).toContain("webhook_deliveries_live")
  expect(reading).not.toContain("webhook_deliveries_done")
  expect(reading).not.toContain("Seq Scan on webhook_deliveries")

  const many = { limit: 200, before: null }
  const live = await store.listDeliveries({ live: true }, many)
  const dead = await store.listDeliveries({ status: "dead" }, many)
  const amend = (rows: readonly Delivery[]) => {
    const amendments = rows.map((row) => ({
      seq: row.seq,
      expectedStatus: row.status,
      expectedAttemptCount: row.attemptCount,
      change: revive(row, NOW),
    }))
    return plan(() => amendWithin(store.database, amendments))
  }
  const ofLive = await amend(live)
  expect(ofLive).toContain("deliveries_live_seq")
  expect(ofLive).not.toContain("webhook_deliveries_done")
  const ofDead = await amend(dead)
  for (const day of DAYS) expect(ofDead).toContain(`webhook_deliveries_done_${day}_seq_idx`)
  expect(ofDead).not.toMatch(WHOLE_DAY)
  expect(ofDead).not.toContain("webhook_deliveries_live")
})
