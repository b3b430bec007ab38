/**
 * A prepared statement's plan is kept as long as its connection. One that was made while the tables were nearly empty must be as good
 * when they are full: it looks rows up by an index, whatever the planner believed at first.
 */
import { describe, expect, test } from "vitest"
import { ON_SHARED_SERVERS, open, Site } from "./site.ts"

/** PostgreSQL keeps a plan from the sixth execution of a statement on, in each connection. */
const QUIET_ROUNDS = 30
const BUSY_ROUNDS = 20
const BACKLOG = 10_000

/** No new statistics but those that the test makes, which would let PostgreSQL plan anew. */
const NO_AUTOVACUUM = `
  DO $$
  DECLARE
    name regclass;
  BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'posthorn'::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
    END LOOP;
  END $$`

/** Many paused lanes of the same application, each with a delivery that waits. */
const FILL = `
  WITH app AS (SELECT id AS app_id, org_id FROM applications),
  filled_endpoints AS (
    INSERT INTO endpoints (
      id, org_id, app_id, url, event_types, description, headers, metadata, ordered, disabled, paused, secrets, version, created_at, updated_at
    ) SELECT 'ep_' || i, org_id, app_id, 'http://x', '{never}', '', '{}', '{}', false, false, true, '', 1, 0, 0
        FROM generate_series(1, ${BACKLOG}) i, app
  ),
  filled_lanes AS (
    INSERT INTO lanes (id, app_id) SELECT 'ep_' || i, app_id FROM generate_series(1, ${BACKLOG}) i, app
  ),
  filled_messages AS (
    INSERT INTO messages (id, app_id, event_type, payload, content_type, channels, tags, metadata, priority, received_at, matched)
    SELECT 'msg_' || i, app_id, 'e', '', '', '[]', '[]', '{}', 1, 0, 1 FROM generate_series(1, ${BACKLOG}) i, app
  )
  INSERT INTO webhook_deliveries (id, app_id, webhook_id, message_id, event_type, target_url, next_retry_at, received_at)
  SELECT 'dlv_' || i, app_id, 'ep_' || i, 'msg_' || i, 'e', 'http://x', 99999999999999, 0 FROM generate_series(1, ${BACKLOG}) i, app`

/** The rows that were read, by scans of the table and of its indexes. */
const READ = `
  SELECT t.relname AS table, t.seq_tup_read::int + coalesce(sum(i.idx_tup_read), 0)::int AS rows
    FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i USING (relid)
   GROUP BY t.relid, t.relname, t.seq_tup_read`

describe.each(ON_SHARED_SERVERS)("on %s", (_, place) => {
  test("statements that were planned on nearly empty tables read no full table", {
    timeout: 60_000,
  }, async () => {
    const site = await Site.open(await place())
    await site.endpoint("a")
    const operator = await site.client()
    await operator.query(NO_AUTOVACUUM)
    // Without the poll, which looks through all lanes on purpose.
    const posthorn = await open({ ...site.place, pollIntervalMs: 86_400_000 })
    let sent = 0
    /** One message that this process accepts and delivers, and one that another accepts. */
    const deliver = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        await posthorn.send("acme", { eventType: "a", payload: {} })
        await site.send("a")
        sent += 2
        await site.receiver.arrived("/a", sent)
      }
    }
    await deliver(5)
    await operator.query("VACUUM (ANALYZE, TRUNCATE false)")
    await deliver(QUIET_ROUNDS)
    await operator.query(FILL)
    await deliver(BUSY_ROUNDS)
    // A connection's counts are written when it ends, at the latest.
    await Promise.all([posthorn.close(), site.sender.close()])
    const { rows } = await operator.query<{ table: string; rows: number }>(READ)
    expect(rows.length).toBeGreaterThan(10)
    // The endpoints of an application are read once by each process, to know where its messages go.
    expect(rows.filter((read) => read.rows > 3 * BACKLOG)).toEqual([])
  })
})
