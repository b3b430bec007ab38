import { getRandomValues } from "node:crypto"
import { expect, test } from "vitest"
import { NOW, plansOf, stage } from "../../../test/support/postgres-store.ts"
import { createIds } from "../../core/ids.ts"
import { revive } from "../../core/operate.ts"
import { AT, newest, ORG, sample } from "../conformance.ts"
import { HOUR_MS } from "../rollups.ts"
import type { Delivery, RollupFilter } from "../store.ts"
import { addWithin } from "./add.ts"
import { amendWithin } from "./amend.ts"
import { DAY_MS } from "./partitions.ts"

const page = newest(50)
/** By application or by number, by the planner's choice. */
const indexOfDead = (day: number) => new RegExp(`webhook_deliveries_done_${day}_(app_id_seq_idx|seq_idx1) `)
const DAYS = [0, 1, 2].map((day) => Math.ceil(NOW / DAY_MS) + day)
/** The table that is created ahead is empty, and read by a sequential scan. */
const WHOLE_DAY = new RegExp(`Seq Scan on \\w+_(live|${DAYS.join("|")})`)

/**
 * Three days of finished deliveries, one in 49 of them dead, and a backlog that belongs to one of a hundred endpoints; of ten
 * applications, of which the tenant has half.
 */
async function fill() {
  const staged = await stage()
  const { store, query } = staged
  await store.partitions.ensureDays(DAYS)
  await query(
    `INSERT INTO applications (id, org_id, name, metadata, created_at, updated_at)
     SELECT 'app_' || i, CASE WHEN i % 2 = 1 THEN $1 ELSE 'org_even' END, '', '{}', 0, 0 FROM generate_series(0, 9) AS i`,
    [ORG],
  )
  await query(
    `INSERT INTO endpoints (
       id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
     ) SELECT 'ep_' || i, o.org_id, o.id, '', '', '{}', '{}', false, false, false, '', 1, 0, 0
         FROM generate_series(0, 99) AS i JOIN applications o ON o.id = 'app_' || i % 10`,
  )
  await query("INSERT INTO lanes (id, app_id) SELECT id, app_id FROM endpoints ON CONFLICT DO NOTHING")
  await query(
    `INSERT INTO messages (id, app_id, event_type, payload, content_type, channels, tags, metadata, priority, received_at, matched)
     SELECT 'msg_' || kind || i, 'app_' || i % 10, 't', '', '', '[]', CASE WHEN i % 10 = 1 THEN '["vip"]' ELSE '[]' END, '{}', 1, i, 1
       FROM generate_series(1, 15000) AS i, unnest(ARRAY['', 'live_']) AS kind`,
  )
  await query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, status, received_at, purge_day)
     SELECT 'dlv_' || i, 'app_' || i % 10, 'ep_' || i % 100, 'msg_' || i, 't', 'u',
            CASE WHEN i % 49 = 0 THEN 'dead' ELSE 'delivered' END, i, $1::int + i % 3
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

test("lists use an index of every table they read, and read no other", async () => {
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
  for (const day of DAYS) expect(dead).toMatch(indexOfDead(day))

  for (const text of [all, ofSmall, ofMessage, live, dead])
    for (const day of DAYS) expect(text).not.toContain(`Seq Scan on webhook_deliveries_done_${day}`)
  for (const text of [all, ofSmall, ofMessage, live])
    expect(text).not.toContain("Seq Scan on webhook_deliveries_live")
})

test("one delivery, and the attempts of one, of an endpoint and of a message are found by indexes", async () => {
  const { store, plan } = await fill()
  const plans = [
    await plan(() => store.getDelivery(ORG, "dlv_77")),
    await plan(() => store.getAttempt("msg_77", "atmpt_77")),
    await plan(() => store.expungeAttempt("msg_77", "atmpt_77")),
    await plan(() => store.listAttempts({ deliveryId: "dlv_77" }, page)),
    await plan(() => store.listAttempts({ messageId: "msg_77" }, page)),
    await plan(() => store.listAttempts({ endpointId: "ep_7" }, page)),
  ]
  for (const text of plans) {
    expect(text).toContain("Index Scan")
    expect(text).not.toMatch(WHOLE_DAY)
  }
})

test("filters by tenant, tag or response read by number, and look up messages", async () => {
  const { store, plan } = await fill()
  const list = (filter: Parameters<typeof store.listDeliveries>[0]) =>
    plan(() => store.listDeliveries(filter, page))
  const ofTenant = await list({ orgId: ORG })
  const tagged = await list({ orgId: ORG, tag: "vip" })
  const answered = await list({ responseClass: 500 })
  for (const text of [ofTenant, tagged, answered]) {
    expect(text).toContain("Scan Backward using deliveries_live_seq")
    for (const day of DAYS) expect(text).toContain(`webhook_deliveries_done_${day}_seq_idx`)
    expect(text).not.toMatch(WHOLE_DAY)
    expect(text).not.toContain("Seq Scan on messages")
  }
  expect(tagged).toContain("messages_id")
  const deadOfTenant = { orgId: ORG, status: "dead", undiscarded: true } as const
  const dead = [await list(deadOfTenant), await plan(() => store.groupDead(deadOfTenant, 10))]
  for (const text of dead) {
    expect(text).not.toContain("webhook_deliveries_live")
    expect(text).not.toMatch(WHOLE_DAY)
    for (const day of DAYS) expect(text).toMatch(indexOfDead(day))
  }
  const attempts = await plan(() => store.listAttempts({ endpointId: "ep_7", tag: "vip" }, page))
  expect(attempts).toContain("messages_id")
  expect(attempts).not.toMatch(WHOLE_DAY)
})

test("lists of applications, endpoints, messages, entries and tasks follow an index in both directions", async () => {
  const { store, query, plan } = await fill()
  const { id } = await store.createTask(sample.task({ action: "expunge", filter: { appId: "app_1000" } }))
  await query(
    `INSERT INTO messages (id, app_id, event_type, payload, content_type, channels, tags, metadata, priority, received_at, matched)
     SELECT 'msg_few_' || i, 'app_1000', 't', '', '', '[]', '["vip"]', '{}', 1, i, 1 FROM generate_series(1, 300) AS i`,
  )
  await query(
    `INSERT INTO applications (id, org_id, name, metadata, created_at, updated_at)
     SELECT 'app_' || i, 'org_' || i % 100, '', '{}', 0, 0 FROM generate_series(10, 3000) AS i`,
  )
  await query(
    `INSERT INTO endpoints (
       id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
     ) SELECT 'ep_' || i, 'org_' || i % 100, 'app_' || i, '', '', '{}', '{}', false, false, false, '', 1, 0, 0
         FROM generate_series(100, 3000) AS i`,
  )
  await query(
    `INSERT INTO entries (kind, name, org_id, owner, body, version, created_at, updated_at)
     SELECT 'key', 'n' || i, 'org_' || i % 100, NULL, '', 1, 0, 0 FROM generate_series(1, 3000) AS i
     UNION ALL SELECT 'key', 'o' || i, 'org_keys', 'app_' || i % 300, '', 1, 0, 0 FROM generate_series(1, 3000) AS i`,
  )
  await query(
    `INSERT INTO tasks (id, org_id, action, type, filter, status, total, done, changed, cursor, up_to, created_at, updated_at)
     SELECT 'qtask_' || i, 'org_' || i % 100, 'retry', 't', '{}', 'finished', 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 3000) AS i`,
  )
  await query("ANALYZE")
  for (const back of [false, true]) {
    const names = { limit: 5, order: "ascending", from: "m", back } as const
    const seqs = { ...page, from: 7000, back }
    const plans = [
      await plan(() => store.listMessages({ appId: "app_1000", tag: "vip" }, seqs, false)),
      await plan(() => store.listEndpoints({ appId: "app_1000" }, names)),
      await plan(() => store.listEndpoints({ orgId: "org_7" }, names)),
      await plan(() => store.listEntries("key", "org_7", names, NOW)),
      await plan(() => store.listApplications("org_7", names)),
      await plan(() => store.listApplications("org_7", names, { name: "Acme" })),
      await plan(() => store.listEndpoints({ orgId: "org_7", uid: "main" }, names)),
      await plan(() => store.findMessages("org_7", "order-1", 10)),
      await plan(() => store.listTasks("org_7", seqs, { status: "running", types: ["t"] })),
      await plan(() => store.listRunningTasks(10)),
      await plan(() => store.listEntries("key", "org_keys", names, NOW, "app_7")),
    ]
    for (const text of plans) expect(text).not.toMatch(/Seq Scan on (?!policies)/)
    expect(plans[0]).toContain("messages_app")
    expect(plans.at(-1)).toContain("entries_owner")
  }
  const reading = await plan(() => store.readTaskMessages(id, 200))
  expect(reading).toContain("messages_app")
})

test("endpoints of the relay are found by their own indexes, among many others", async () => {
  const { store, query, plan } = await fill()
  await query(
    `INSERT INTO endpoints (
       id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
     ) SELECT 'ep_' || i, 'org', 'app_' || i % 3, CASE WHEN i % 20 = 0 THEN 'relay://hub-' || i ELSE 'https://a.example' END,
              '', '{}', '{}', false, false, false, '', 1, 0, 0
         FROM generate_series(100, 10000) AS i`,
  )
  await query("ANALYZE")
  for (const from of [null, "ep_5"]) {
    const names = { limit: 5, order: "ascending", from, back: false } as const
    expect(await plan(() => store.listEndpoints({ transport: "relay" }, names))).toMatch(
      /Index Scan using endpoints_relay on endpoints/,
    )
    const ofAgent = await plan(() => store.listEndpoints({ appId: "app_1", url: "relay://hub-400" }, names))
    expect(ofAgent).toMatch(/endpoints_relay_url.*Index Cond: .*app_id = .*url = /s)
    expect(ofAgent).not.toContain("Seq Scan on endpoints")
  }
})

test("roll-ups are found by endpoint, application or tenant, with their hours", async () => {
  const { store, query, plan } = await fill()
  await query(
    `INSERT INTO attempt_rollups
     SELECT 'ep_' || e, h * ${HOUR_MS}, 't', 1, 'app_' || e % 500, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL
       FROM generate_series(1, 100) AS h, generate_series(1, 1000) AS e`,
  )
  await query("ANALYZE attempt_rollups")
  const hours = { since: 50 * HOUR_MS, until: 70 * HOUR_MS }
  const sum = (filter: RollupFilter) => plan(() => store.sumRollups({ ...filter, ...hours }, ["hour"]))
  const ofEndpoints = await sum({ orgId: ORG, endpointIds: ["ep_7", "ep_9"] })
  expect(ofEndpoints).toMatch(/attempt_rollups_pkey.*Index Cond: \(\(webhook_id = ANY .*hour >= .*hour < /s)
  const byAge = await sum({ orgId: ORG, maybeOlderThanMs: 1000 })
  for (const text of [await sum({ appId: "app_7" }), await sum({ orgId: ORG }), byAge])
    expect(text).toMatch(/attempt_rollups_app.*Index Cond: \(\(app_id = .*hour >= .*hour < /s)
})

test("the activity and the trouble of endpoints are found by probes of indexes", async () => {
  const { store, query, plan } = await fill()
  await query(
    `INSERT INTO attempt_rollups
     SELECT 'ep_' || e, h * ${HOUR_MS}, 't', 1, 'app_' || e % 500, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, h
       FROM generate_series(1, 100) AS h, generate_series(1, 1000) AS e`,
  )
  // Where only few lanes have rows, the planner is tempted to read those of all lanes in the order of their numbers.
  await query("DELETE FROM webhook_deliveries_live")
  await query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, received_at, attempt_count, status)
     SELECT 'dlv_retry_' || i, 'app_1', 'ep_' || i % 5, 'msg_' || i, 't', 'u', i, i / 5 % 2, 'failed' FROM generate_series(1, 50000) AS i`,
  )
  await query("ANALYZE")
  const activity = await plan(() => store.getActivity(["ep_1", "ep_7"], NOW))
  for (const index of ["deliveries_live_due", "deliveries_live_retrying"])
    expect(activity).toContain(`using ${index} on webhook_deliveries_live`)
  expect(activity).not.toContain("deliveries_live_seq")
  expect(activity).not.toMatch(/Seq Scan on (attempt_rollups|webhook_deliveries)/)
  const names = { limit: 5, order: "ascending", from: null, back: false } as const
  const troubled = await plan(() =>
    store.listEndpoints({ appId: "app_7", troubledSince: 99 * HOUR_MS }, names),
  )
  expect(troubled).not.toContain("Seq Scan on attempt_rollups")
})

test("lanes are read one after the other, each by the index of its waiting rows", async () => {
  const { store, plan } = await fill()
  const text = await plan(() =>
    store.listLanes({ orgId: ORG }, { limit: 5, order: "ascending", from: "ep_2", back: false }),
  )
  expect(text).toContain("deliveries_live_due")
  expect(text).not.toContain("Seq Scan on webhook_deliveries_live")
})

test("additions look up their messages, and whether those have a delivery, by indexes", async () => {
  const { store, plan } = await fill()
  const ids = createIds((into) => getRandomValues(into))
  const additions = Array.from({ length: 20 }, (_, i) => ({
    messageId: `msg_${i * 10 + 1}`,
    endpointId: "ep_1",
    manual: false,
  }))
  const text = await plan(() => addWithin({ ids }, store.database, additions, AT))
  for (const day of DAYS) expect(text).toContain(`webhook_deliveries_done_${day}_message_id_idx`)
  expect(text).not.toMatch(WHOLE_DAY)
  expect(text).not.toContain("Seq Scan on messages")
})

test("a task over live rows reads no finished table, and each amendment reads only its own partitions", async () => {
  const { store, plan } = await fill()
  for (const of of [{ endpointId: "ep_1" }, { appId: "app_1" }, { appId: "app_2" }]) {
    const filter = { ...of, live: true }
    const task = await store.createTask(sample.task({ action: "cancel", filter }))
    const reading = await plan(() => store.readTask(task.id, 200))
    expect(reading).not.toContain("Seq Scan on webhook_deliveries")
    for (const text of [reading, await plan(() => store.countDeliveries(filter))]) {
      expect(text).toContain("webhook_deliveries_live")
      expect(text).not.toContain("webhook_deliveries_done")
    }
  }

  const many = newest(200)
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
