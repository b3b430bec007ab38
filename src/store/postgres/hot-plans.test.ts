/** The statements of every delivery use their indexes, also with a large backlog. */
import type { Client } from "pg"
import { expect, test } from "vitest"
import { NOW, stage } from "../../../test/support/postgres-store.ts"
import { AT, laneFetch, lanesOf, sample, settlement } from "../conformance.ts"
import { fenceSettlement } from "../fence.ts"
import { ACCEPT, acceptValues, generationOf, type Offers } from "./accept.ts"
import { HOT_SETTINGS } from "./connection.ts"
import { FETCH, fetchValues } from "./fetch.ts"
import type { Session } from "./lane-sessions.ts"
import type { AskedLane } from "./lanes.ts"
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
  /** The plan of a statement that was run and rolled back. */
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
  await Promise.all(Array.from({ length: 20 }, () => store.acceptMany([sample.message(application.id)])))
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

/** Rows of the large tables that are read, compared with the work to do. */
function rowsRead(nodes: readonly Plan[], relation: RegExp): number {
  return nodes
    .filter((node) => relation.test(node["Relation Name"] ?? "") && node["Node Type"].includes("Scan"))
    .reduce(
      (sum, node) =>
        sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
      0,
    )
}

/** Pairs of rows that a join compared and rejected. */
function comparedInVain(nodes: readonly Plan[]): number {
  return nodes.reduce(
    (sum, node) => sum + (node["Rows Removed by Join Filter"] ?? 0) * node["Actual Loops"],
    0,
  )
}

/** Number of scans of the table. */
function looksInto(nodes: readonly Plan[], relation: RegExp): number {
  return nodes
    .filter((node) => relation.test(node["Relation Name"] ?? ""))
    .reduce((sum, node) => sum + node["Actual Loops"], 0)
}

const WANT = { limit: 10, starting: 1, retryShare: 2, retries: 10, handoffPlaces: 0 }

/** A session with these handed deliveries, and none fetched. */
const ask = (endpointId: string, handed: readonly number[] = []): AskedLane => ({
  ...WANT,
  endpointId,
  token: 1,
  knownVersion: null,
  isOpen: false,
  session: { handed, fetched: [] },
})

/** Successes of all deliveries of the lanes. */
async function succeed({ store }: Scene, endpointIds: readonly string[]) {
  const works = await Promise.all(endpointIds.map((id) => lanesOf(store).fetch(laneFetch(id, 1, WANT), NOW)))
  return works.flatMap(({ deliveries }, i) =>
    deliveries.map((one) => settlement(endpointIds[i]!, 1, one, 200)),
  )
}

function valuesOf(settlements: readonly ReturnType<typeof settlement>[], wasHanded: boolean): unknown[] {
  return settleValues(
    settlements.map((one) => ({ claim: fenceSettlement({ ...one, appId: "" }, one), wasHanded })),
  )
}

/** Open lanes of a living worker. */
async function offers({ client }: Scene, endpointIds: readonly string[]): Promise<Offers> {
  const { rows } = await client.query(
    "INSERT INTO workers (lease_until, name) VALUES (now() + interval '1 hour', 'ours') RETURNING id::int",
  )
  const lanes = endpointIds.map((endpointId) => ({
    session: { claim: { endpointId, appId: "", token: 1 } } as Session,
    version: 1,
    room: 999,
    starting: 1,
  }))
  return { owner: rows[0].id, lanes }
}

test("a fetch reads only the rows that it claims, by the index of due rows", async () => {
  const { plan, endpointId } = await backlog()
  const nodes = await plan(FETCH, fetchValues([ask(endpointId)], AT))
  expect(nodes.map((node) => node["Index Name"])).toContain("deliveries_live_due")
  expect(rowsRead(nodes, /^webhook_deliveries/)).toBeLessThanOrEqual(3 * 10)
  expect(rowsRead(nodes, /^messages/)).toBeLessThanOrEqual(10)
  expect(rowsRead(nodes, /^lanes/)).toBeLessThanOrEqual(4)
  expect(rowsRead(nodes, /^applications/)).toBeLessThanOrEqual(10)
})

test("a fetch with the newest version of the endpoint reads no application and no policy", async () => {
  const { plan, endpointId } = await backlog()
  const nodes = await plan(FETCH, fetchValues([{ ...ask(endpointId), knownVersion: 1 }], AT))
  expect(rowsRead(nodes, /^(applications|policies)/)).toBe(0)
})

test("a fetch of a full lane reads no more rows than its limit", async () => {
  const { store, plan, blockedId } = await backlog()
  await store.updateEndpoint(blockedId, { disabled: false }, NOW)
  const nodes = await plan(FETCH, fetchValues([ask(blockedId)], AT))
  expect(rowsRead(nodes, /^webhook_deliveries/)).toBeLessThanOrEqual(3 * 10)
})

test.each([
  ["fetched", false],
  ["handed over", true],
])("a settle of %s deliveries reads only the rows that it writes, and no finished partition", async (_name, wasHanded) => {
  const scene = await backlog()
  const { store, client, plan, endpointId } = scene
  const [first, ...settlements] = await succeed(scene, [endpointId])
  // The first one creates the day's partitions.
  await lanesOf(store).settle([first!])
  if (wasHanded)
    await client.query("UPDATE webhook_deliveries_live SET handed_token = 1 WHERE webhook_id = $1", [
      endpointId,
    ])
  const nodes = await plan(SETTLE, valuesOf(settlements, wasHanded))
  expect(nodes.map((node) => node["Index Name"])).toContain("deliveries_live_seq")
  // Once to lock them, once to write them.
  expect(rowsRead(nodes, /^webhook_deliveries_live/)).toBeLessThanOrEqual(2 * settlements.length)
  // To lock it, and to write it.
  expect(rowsRead(nodes, /^lanes/)).toBeLessThanOrEqual(wasHanded ? 0 : 2)
  const scans = nodes.filter((node) => node["Node Type"].includes("Scan"))
  expect(scans.filter((node) => /_done|_kept|_\d+$/.test(node["Relation Name"] ?? ""))).toEqual([])
})

test.each([
  ["no lane", false],
  ["a lane", true],
])("accepting, with %s open, reads the subscribed endpoints and no delivery", async (_name, isOpen) => {
  const scene = await backlog()
  const { store, plan, appId, endpointId } = scene
  const messages = [1, 2, 3].map((n) =>
    sample.message(appId, {
      eventId: `e${n}`,
      idempotency: { key: Buffer.alloc(16, n), digest: Buffer.alloc(16, n) },
    }),
  )
  await store.partitions.ensureGeneration(generationOf(messages))
  const nodes = await plan(
    ACCEPT,
    acceptValues(messages, isOpen ? await offers(scene, [endpointId]) : undefined),
  )
  expect(rowsRead(nodes, /^(webhook_deliveries|lanes)/)).toBe(0)
  expect(rowsRead(nodes, /^endpoints/)).toBeLessThanOrEqual(3 * 2)
  expect(rowsRead(nodes, /^endpoint_subscriptions/)).toBeLessThanOrEqual(3 * 2)
  expect(rowsRead(nodes, /^messages/)).toBe(0)
  expect(rowsRead(nodes, /^workers/)).toBe(isOpen ? 1 : 0)
})

test("a large batch compares no row with every other", async () => {
  const scene = await backlog()
  const { store, plan, client, appId, endpointId } = scene
  const lanes = 50
  const each = 5
  await client.query(
    `INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, status, next_retry_at, received_at)
     SELECT 'dlv_' || l || '_' || i, $1, 'ep_' || l, 'msg_' || i, 'e', 'http://x', 'pending', $2, $2
       FROM generate_series(1, ${lanes}) l, generate_series(1, ${each}) i`,
    [appId, NOW],
  )
  const asked = Array.from({ length: lanes }, (_, i) => ask(`ep_${i + 1}`))
  const fetching = await plan(FETCH, fetchValues(asked, AT))
  expect(comparedInVain(fetching)).toBeLessThanOrEqual(lanes * each)
  // For each lane its ranks, once for due rows and once for the next; and each delivery.
  expect(looksInto(fetching, /^webhook_deliveries/)).toBeLessThanOrEqual(lanes * 16 + lanes * each)

  const settlements = await succeed(
    scene,
    asked.map(({ endpointId }) => endpointId),
  )
  expect(settlements).toHaveLength(lanes * each)
  await lanesOf(store).settle([settlements.pop()!])
  for (const wasHanded of [false, true]) {
    if (wasHanded) await client.query("UPDATE webhook_deliveries_live SET handed_token = 1")
    const settling = await plan(SETTLE, valuesOf(settlements, wasHanded))
    expect(comparedInVain(settling)).toBeLessThanOrEqual(lanes * each)
  }

  const messages = Array.from({ length: 200 }, (_, n) =>
    sample.message(appId, {
      eventId: `e${n}`,
      idempotency: { key: Buffer.alloc(16, n), digest: Buffer.alloc(16, n) },
    }),
  )
  await store.partitions.ensureGeneration(generationOf(messages))
  for (const open of [undefined, await offers(scene, [endpointId])])
    expect(comparedInVain(await plan(ACCEPT, acceptValues(messages, open)))).toBeLessThanOrEqual(
      messages.length,
    )
})

test("a fetch with many handed deliveries looks up each of them once", async () => {
  const { plan, client, endpointId, store, appId } = await backlog()
  await Promise.all(Array.from({ length: 500 }, () => store.acceptMany([sample.message(appId)])))
  const { rows } = await client.query(
    "UPDATE webhook_deliveries_live SET handed_token = 1 WHERE webhook_id = $1 RETURNING seq::int",
    [endpointId],
  )
  const seqs = rows.map(({ seq }) => seq)
  const nodes = await plan(FETCH, fetchValues([ask(endpointId, seqs)], AT))
  expect(rows.length).toBeGreaterThanOrEqual(500)
  // Once in the index, and once in the list.
  expect(rowsRead(nodes, /^webhook_deliveries_live/)).toBeLessThanOrEqual(2 * rows.length)
  const listed = nodes.filter((node) => (node as { "CTE Name"?: string })["CTE Name"] === "handed")
  expect(Math.max(...listed.map((node) => node["Actual Loops"]))).toBe(1)
})
