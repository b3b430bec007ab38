import { getRandomValues } from "node:crypto"
import { expect, test } from "vitest"
import { migratedDatabase } from "../../../test/support/migrated-database.ts"
import { connect, openStore, plansOf } from "../../../test/support/postgres-store.ts"
import { createIds } from "../../core/ids.ts"
import { BOUNDED_PAGES, type Callable, MOST_READ, SCALE } from "../conformance/bounded-pages.ts"

const { startedAt, endpoints } = SCALE

interface Plan {
  readonly "Node Type": string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly Plans?: readonly Plan[]
}

/** Rows that the plan takes out of tables and indexes. */
function rowsOf(plan: Plan): number {
  const isScan = /^(Seq|Index|Index Only|Bitmap Heap) Scan/.test(plan["Node Type"])
  const rows = plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)
  const below = (plan.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0)
  return below + (isScan ? rows * plan["Actual Loops"] : 0)
}

/** One in five deliveries is dead, one in five waits for a retry, the others were delivered. */
async function counting(count: number) {
  const url = await migratedDatabase()
  const store = await openStore(url)
  const client = await connect(url)
  const ids = createIds((into) => getRandomValues(into))
  const made = (prefix: "msg" | "dlv" | "atmpt") =>
    Array.from({ length: count }, (_, n) => ids.make(prefix, startedAt + n * 1000))
  await client.query("CREATE TEMP TABLE rows (message text, delivery text, attempt text, n bigint)")
  await client.query(
    "INSERT INTO rows SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY",
    [made("msg"), made("dlv"), made("atmpt")],
  )
  await client.query(`
    INSERT INTO endpoints (
      id, org_id, app_id, url, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || n, 'org', 'app_1', '', '', '{}', '{}', false, false, false, '', 1, 1, 1 FROM generate_series(0, ${endpoints - 1}) n;
    INSERT INTO messages (
      id, app_id, event_type, content_type, channels, tags, metadata, priority, received_at, matched
    ) SELECT message, 'app_1', 'a', '', '[]', '[]', '{}', 1, ${startedAt} + n * 1000, 1 FROM rows ORDER BY n;
    INSERT INTO lanes (id, app_id) SELECT id, app_id FROM endpoints;
    INSERT INTO webhook_deliveries (
      id, app_id, webhook_id, message_id, event_type, target_url, status, dead_reason, attempt_count, next_retry_at, received_at
    ) SELECT delivery, 'app_1', 'ep_' || (n * 7 / 5 % ${endpoints}), message, 'a', '',
             (ARRAY['dead', 'failed', 'delivered', 'delivered', 'delivered'])[n % 5 + 1],
             CASE WHEN n % 5 = 0 THEN 'exhausted' END, 1, ${startedAt} + n * 1000, ${startedAt} + n * 1000
        FROM rows ORDER BY n;
    INSERT INTO attempts (
      id, delivery_id, webhook_id, message_id, attempt_number, status, url, response_status, response_truncated, started_at, duration_ms
    ) SELECT r.attempt, d.id, d.webhook_id, d.message_id, 1, 'failed', '', 500, false, d.received_at, 1
        FROM rows r JOIN webhook_deliveries d ON d.id = r.delivery ORDER BY r.n;
    ANALYZE`)
  return async (read: (store: Callable) => Promise<unknown>) => {
    const plans = await plansOf(url, store, () => read(store), "ANALYZE, TIMING off, FORMAT json")
    return plans.reduce((sum, text) => sum + rowsOf(JSON.parse(text)[0].Plan), 0)
  }
}

/** For an endpoint with a tenth of the rows the planner may read them by number, once for the end and once for the page. */
const MOST = MOST_READ + 2 * endpoints * SCALE.most

test("a page of the dashboard reads as many rows among 24 000 deliveries as among 6000", async () => {
  const [small, large] = [await counting(6000), await counting(24_000)]
  for (const [what, read] of Object.entries(BOUNDED_PAGES)) {
    const readBounded = (store: Callable) => read(store, true)
    expect(await small(readBounded), what).toBeLessThanOrEqual(MOST)
    expect(await large(readBounded), what).toBeLessThanOrEqual(MOST)
  }
  const lanes = (most?: number) => async (store: Callable) =>
    store.listLanes({}, { limit: endpoints, order: "ascending", from: null, back: false }, most)
  expect(await large(lanes(SCALE.most)), "lanes").toBeLessThanOrEqual(MOST)
  expect(await large(lanes()), "lanes").toBeGreaterThan(24_000 / 5)
  const unbounded = BOUNDED_PAGES["deliveries of a channel"]!
  expect(await large((store) => unbounded(store, false))).toBeGreaterThan(24_000)
})
