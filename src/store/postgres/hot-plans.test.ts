/** The statements that every delivery pays for read by the indexes that they were written for, whatever has piled up. */
import type { Client } from "pg"
import { expect, test } from "vitest"
import { NOW, stage } from "../../../test/support/postgres-store.ts"
import { sample, settlement } from "../conformance.ts"
import { Recipients } from "../recipients.ts"
import { ACCEPT, acceptValues, generationOf } from "./accept.ts"
import { ACCEPT_KNOWN, acceptKnownValues, applicationsOf, type Planned } from "./accept-known.ts"
import { HOT_SETTINGS } from "./connection.ts"
import { deliveredValues, SETTLE_DELIVERED } from "./delivered.ts"
import { FETCH, fetchValues } from "./fetch.ts"
import { Hands } from "./hands.ts"
import { SETTLE, settleValues } from "./settle.ts"
import type { Statement } from "./statement.ts"
import type { PostgresStore } from "./store.ts"

const ENDPOINTS = 5000
const BACKLOG = 10_000

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Join Filter"?: number
  readonly Plans?: readonly Plan[]
}

interface Scene {
  readonly store: PostgresStore
  readonly client: Client
  readonly appId: string
  readonly endpointId: string
  readonly blockedId: string
  /** The plan of a statement that was run, and taken back. */
  plan(statement: Statement, values: readonly unknown[]): Promise<Plan[]>
}

/** One lane with a backlog and as many finished rows, one with twenty, and many idle ones. */
async function backlog(): Promise<Scene> {
  const { store, client, application, endpoint } = await stage()
  const blocked = sample.endpoint(application.id, { disabled: true })
  await store.createEndpoint(blocked)
  await client.query(`
    INSERT INTO endpoints (
      id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || i, 'org_1', 'app_' || i % 500, 'http://x', '', '{}', '{}', false, false, false, '', 1, 0, 0
        FROM generate_series(1, ${ENDPOINTS}) i`)
  await client.query(
    `INSERT INTO endpoints (
       id, org_id, app_id, url, event_types, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
     ) SELECT 'ep_other_' || i, 'org_1', $1, 'http://x', ARRAY['type-' || i], '', '{}', '{}', false, false, false, '', 1, 0, 0
         FROM generate_series(1, 200) i`,
    [application.id],
  )
  await client.query(`
    INSERT INTO applications (id, org_id, name, metadata, created_at, updated_at)
    SELECT 'app_' || i, 'org_1', '', '{}', 0, 0 FROM generate_series(0, 499) i`)
  await client.query(`
    INSERT INTO policies (org_id, name, policy, updated_at) SELECT 'org_1', 'p' || i, '{}', 0 FROM generate_series(1, 100) i`)
  await client.query("INSERT INTO lanes (id, app_id) SELECT id, app_id FROM endpoints ON CONFLICT DO NOTHING")
  await client.query(
    `INSERT INTO messages (id, app_id, event_type, payload, content_type, channels, tags, metadata, priority, received_at, matched)
     SELECT 'msg_' || i, $1, 'e', '', '', '[]', '[]', '{}', 1, $2, 1 FROM generate_series(1, ${BACKLOG}) i`,
    [application.id, NOW],
  )
  await client.query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, status, next_retry_at, received_at)
     SELECT 'dlv_' || i, $1, $2, 'msg_' || i, 'e', 'http://x', s, $3, $3
       FROM generate_series(1, ${BACKLOG}) i, unnest(ARRAY['pending', 'delivered']) s`,
    [application.id, blocked.id, NOW],
  )
  await Promise.all(Array.from({ length: 20 }, () => store.accept([sample.message(application.id)])))
  await client.query("VACUUM ANALYZE")
  await client.query(HOT_SETTINGS)
  return {
    store,
    client,
    appId: application.id,
    endpointId: endpoint.id,
    blockedId: blocked.id,
    async plan({ text }, values) {
      await client.query("BEGIN")
      const { rows } = await client.query({
        text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        values: [...values],
      })
      await client.query("ROLLBACK")
      return flatten(rows[0]["QUERY PLAN"][0].Plan)
    },
  }
}

function flatten(node: Plan): Plan[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}

/** No more rows of the large tables are touched than there is work to do. */
function rowsRead(nodes: readonly Plan[], relation: RegExp): number {
  return nodes
    .filter((node) => relation.test(node["Relation Name"] ?? "") && node["Node Type"].includes("Scan"))
    .reduce(
      (sum, node) =>
        sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
      0,
    )
}

/** Pairs of rows that were compared and did not belong together. */
function comparedInVain(nodes: readonly Plan[]): number {
  return nodes.reduce(
    (sum, node) => sum + (node["Rows Removed by Join Filter"] ?? 0) * node["Actual Loops"],
    0,
  )
}

/** How often the table was looked into. */
function looksInto(nodes: readonly Plan[], relation: RegExp): number {
  return nodes
    .filter((node) => relation.test(node["Relation Name"] ?? ""))
    .reduce((sum, node) => sum + node["Actual Loops"], 0)
}

const ask = (endpointId: string) => ({
  endpointId,
  token: 1,
  limit: 10,
  starting: 1,
  retryShare: 2,
  knownVersion: null,
  inHand: [],
  settling: 0,
  isOpen: false,
})

test("a fetch reads the rows that it takes, by the index of what is due", async () => {
  const { plan, endpointId } = await backlog()
  const nodes = await plan(FETCH, fetchValues(new Hands(), [ask(endpointId)], NOW))
  expect(nodes.map((node) => node["Index Name"])).toContain("deliveries_live_due")
  expect(rowsRead(nodes, /^webhook_deliveries/)).toBeLessThanOrEqual(3 * 10)
  expect(rowsRead(nodes, /^messages/)).toBeLessThanOrEqual(10)
  expect(rowsRead(nodes, /^lanes/)).toBeLessThanOrEqual(4)
  expect(rowsRead(nodes, /^applications/)).toBeLessThanOrEqual(10)
})

test("a fetch by whoever knows the endpoint reads no application and no policy", async () => {
  const { plan, endpointId } = await backlog()
  const nodes = await plan(FETCH, fetchValues(new Hands(), [{ ...ask(endpointId), knownVersion: 1 }], NOW))
  expect(rowsRead(nodes, /^(applications|policies)/)).toBe(0)
})

test("a fetch of the full lane itself reads no more than it may take", async () => {
  const { store, plan, blockedId } = await backlog()
  await store.updateEndpoint(blockedId, { disabled: false }, NOW)
  const nodes = await plan(FETCH, fetchValues(new Hands(), [ask(blockedId)], NOW))
  expect(rowsRead(nodes, /^webhook_deliveries/)).toBeLessThanOrEqual(3 * 10)
})

test("a settle reads the rows that it writes, and no partition of finished ones", async () => {
  const { store, plan, endpointId } = await backlog()
  const [work] = await store.fetch([ask(endpointId)], NOW)
  const [first, ...settlements] = work!.deliveries.map((one) => settlement(endpointId, 1, one, 200))
  // The first of its day makes the day's partitions.
  await store.settle([first!])
  const nodes = await plan(SETTLE, settleValues(new Hands(), settlements))
  expect(nodes.map((node) => node["Index Name"])).toContain("deliveries_live_seq")
  // Once to lock them, once to write them.
  expect(rowsRead(nodes, /^webhook_deliveries_live/)).toBeLessThanOrEqual(2 * settlements.length)
  const scans = nodes.filter((node) => node["Node Type"].includes("Scan"))
  expect(scans.filter((node) => /_done|_kept|_\d+$/.test(node["Relation Name"] ?? ""))).toEqual([])
})

test("accepting reads the endpoints that want the message and no delivery", async () => {
  const { store, plan, appId } = await backlog()
  const messages = [1, 2, 3].map((n) =>
    sample.message(appId, {
      eventId: `e${n}`,
      idempotency: { key: Buffer.alloc(16, n), digest: Buffer.alloc(16, n) },
    }),
  )
  await store.partitions.ensureGeneration(generationOf(messages))
  const nodes = await plan(ACCEPT, acceptValues(messages))
  expect(rowsRead(nodes, /^webhook_deliveries/)).toBe(0)
  expect(rowsRead(nodes, /^endpoints/)).toBeLessThanOrEqual(3 * 2)
  expect(rowsRead(nodes, /^endpoint_subscriptions/)).toBeLessThanOrEqual(3 * 2)
  expect(rowsRead(nodes, /^messages/)).toBe(0)
})

test("a large batch compares no row with every other", async () => {
  const { store, plan, client, appId } = await backlog()
  const lanes = 50
  const each = 5
  await client.query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, status, next_retry_at, received_at)
     SELECT 'dlv_' || l || '_' || i, $1, 'ep_' || l, 'msg_' || i, 'e', 'http://x', 'pending', $2, $2
       FROM generate_series(1, ${lanes}) l, generate_series(1, ${each}) i`,
    [appId, NOW],
  )
  const asked = Array.from({ length: lanes }, (_, i) => ask(`ep_${i + 1}`))
  const fetching = await plan(FETCH, fetchValues(new Hands(), asked, NOW))
  expect(comparedInVain(fetching)).toBeLessThanOrEqual(lanes * each)
  // For each lane its ranks, once for what is due and once for what is next; and each delivery.
  expect(looksInto(fetching, /^webhook_deliveries/)).toBeLessThanOrEqual(lanes * 16 + lanes * each)

  const works = await store.fetch(asked, NOW)
  const settlements = works.flatMap(({ endpointId, deliveries }) =>
    deliveries.map((one) => settlement(endpointId, 1, one, 200)),
  )
  expect(settlements).toHaveLength(lanes * each)
  await store.settle([settlements.pop()!])
  for (const settling of [
    await plan(SETTLE, settleValues(new Hands(), settlements)),
    await plan(SETTLE_DELIVERED, deliveredValues(settlements)),
  ])
    expect(comparedInVain(settling)).toBeLessThanOrEqual(lanes * each)

  const messages = Array.from({ length: 200 }, (_, n) =>
    sample.message(appId, {
      eventId: `e${n}`,
      idempotency: { key: Buffer.alloc(16, n), digest: Buffer.alloc(16, n) },
    }),
  )
  await store.partitions.ensureGeneration(generationOf(messages))
  expect(comparedInVain(await plan(ACCEPT, acceptValues(messages)))).toBeLessThanOrEqual(messages.length)
  const known = planned(appId, messages.length)
  const accepting = await plan(ACCEPT_KNOWN, acceptKnownValues(known, applicationsOf(known)))
  expect(comparedInVain(accepting)).toBeLessThanOrEqual(messages.length)
})

/** Messages to an endpoint that is known, of a worker that is not. */
function planned(appId: string, count: number): Planned[] {
  const route = { id: "ep_1", url: "http://x", ordered: false, eventTypes: null, channels: null, version: 1 }
  const routes = { recipients: new Recipients(appId, [route]), version: 201 }
  return Array.from({ length: count }, (_, n) => ({
    message: sample.message(appId),
    routes,
    deliveries: [{ id: `dlv_known_${n}`, route, offer: { token: 1, starts: true, owner: 1 } }],
  }))
}

test("what is delivered at the first attempt is settled by the row's own index, and accepting for known endpoints reads none of them", async () => {
  const { store, plan, endpointId, appId, client } = await backlog()
  const [work] = await store.fetch([ask(endpointId)], NOW)
  const [first, ...settlements] = work!.deliveries.map((one) => settlement(endpointId, 1, one, 200))
  await store.settle([first!])
  const settling = await plan(SETTLE_DELIVERED, deliveredValues(settlements))
  expect(rowsRead(settling, /^webhook_deliveries_live/)).toBeLessThanOrEqual(2 * settlements.length)
  const scans = settling.filter((node) => node["Node Type"].includes("Scan"))
  expect(scans.filter((node) => /_done|_kept|_\d+$/.test(node["Relation Name"] ?? ""))).toEqual([])

  const { rows } = await client.query("SELECT version::int FROM application_routes WHERE app_id = $1", [
    appId,
  ])
  const known = planned(appId, 20).map((one) => ({
    ...one,
    routes: { ...one.routes, version: rows[0].version },
  }))
  const accepting = await plan(ACCEPT_KNOWN, acceptKnownValues(known, applicationsOf(known)))
  expect(rowsRead(accepting, /^(webhook_deliveries|messages|endpoints|endpoint_subscriptions|lanes)/)).toBe(0)
  expect(rowsRead(accepting, /^applications/)).toBeLessThanOrEqual(20)
})

test("a fetch beside many that were handed over looks each of them up once", async () => {
  const { plan, client, endpointId, store, appId } = await backlog()
  await Promise.all(Array.from({ length: 500 }, () => store.accept([sample.message(appId)])))
  const { rows } = await client.query(
    "UPDATE webhook_deliveries_live SET handed_token = 1 WHERE webhook_id = $1 RETURNING seq::int",
    [endpointId],
  )
  const hands = new Hands()
  hands.open(endpointId, { token: 1, owner: 1, version: 1, most: 9999, used: 0, free: 0 })
  const route = { id: endpointId, url: "", ordered: false, eventTypes: null, channels: null, version: 1 }
  for (const { seq } of rows) hands.take(endpointId, hands.offer(route, 0)!, seq)
  const nodes = await plan(FETCH, fetchValues(hands, [ask(endpointId)], NOW))
  expect(rows.length).toBeGreaterThanOrEqual(500)
  // Once in the index, and once in the list.
  expect(rowsRead(nodes, /^webhook_deliveries_live/)).toBeLessThanOrEqual(2 * rows.length)
  const listed = nodes.filter((node) => (node as { "CTE Name"?: string })["CTE Name"] === "handed")
  expect(Math.max(...listed.map((node) => node["Actual Loops"]))).toBe(1)
})
