/** What is moved, table by table: which rows of SQLite, in which order, and what PostgreSQL makes of them. */
import type { SQLOutputValue } from "node:sqlite"
import { GENERATION_MS, KEPT_GENERATIONS } from "../store/postgres/accept.ts"
import { DAY_MS, type Partitions, purgeDay } from "../store/postgres/partitions.ts"
import { KEPT_DAY, LIVE_DAY } from "../store/postgres/schema.ts"
import type { Statement } from "../store/postgres/statement.ts"
import { Bulk, type Shape } from "./bulk.ts"
import { APPLICATION, ATTEMPT, DELIVERY, ENDPOINT, ENTRY, MESSAGE, POLICY, TASK } from "./shapes.ts"
import type { Source, SourceRow } from "./source.ts"

export interface Step {
  readonly name: string
  /** What it is called in the comparison; the generations of idempotency keys are one there. */
  readonly table: string
  /** Its rows in SQLite, and the columns that order them. */
  readonly select: string
  readonly key: readonly string[]
  readonly insert: Statement
  readonly count: string
  values(rows: readonly SourceRow[]): unknown[]
  /** Makes the partitions that the rows go to. */
  prepare(partitions: Partitions, rows: readonly SourceRow[]): Promise<void>
}

interface Parts {
  readonly shape: Shape
  readonly key?: readonly string[]
  readonly name?: string
  readonly select?: string
  readonly count?: string
  /** Instead of an insert of all columns; `x` has the rows. */
  readonly write?: string
  prepare?(partitions: Partitions, rows: readonly SourceRow[]): Promise<void>
}

function step(table: string, parts: Parts): Step {
  const { shape, key = ["seq"], name = table, select = `SELECT * FROM ${table}` } = parts
  const { count = `SELECT count(*) AS n FROM ${table}`, prepare = async () => {} } = parts
  const bulk = new Bulk(shape)
  const columns = bulk.names.join(", ")
  const write = parts.write ?? `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM x ORDER BY ord`
  const insert = { name: `migrate.${table}`, text: `WITH x AS (${bulk.select})\n${write}` }
  return { name, table, select, key, insert, count, prepare, values: (rows) => bulk.values(rows) }
}

const APPLICATIONS = step("applications", {
  key: ["id"],
  shape: APPLICATION,
})

const ENDPOINTS = step("endpoints", {
  key: ["id"],
  shape: ENDPOINT,
  write: `, lane AS (INSERT INTO lanes (id, app_id) SELECT id, app_id FROM x)
    INSERT INTO endpoints (${Object.keys(ENDPOINT)}) SELECT ${Object.keys(ENDPOINT)} FROM x`,
})

const POLICIES = step("policies", {
  key: ["org_id", "name"],
  shape: POLICY,
})

const ENTRIES = step("entries", {
  key: ["kind", "name", "org_id"],
  shape: ENTRY,
})

const MESSAGES = step("messages", {
  shape: MESSAGE,
})

/** The day of a finished delivery; what could have gone already lies in one table, and not in one for each day that was missed. */
function dayOf(status: SQLOutputValue, purgeAt: SQLOutputValue, startedAt: number): number {
  if (status !== "delivered" && status !== "dead") return KEPT_DAY
  return Math.max(purgeDay(purgeAt as number | null, startedAt), Math.floor(startedAt / DAY_MS))
}

function deliveries(startedAt: number): Step {
  const day = (row: SourceRow) => dayOf(row.status!, row.purge_at!, startedAt)
  return step("webhook_deliveries", {
    shape: { ...DELIVERY, purge_day: ["int", day] },
    prepare: (partitions, rows) => partitions.ensureDays(new Set(rows.map(day))),
  })
}

/** Each lies where its delivery lies. */
function attempts(startedAt: number): Step {
  const day = (row: SourceRow) => {
    const finished = dayOf(row.delivery_status!, row.delivery_purge_at!, startedAt)
    return row.delivery_status === "delivered" || row.delivery_status === "dead" ? finished : LIVE_DAY
  }
  return step("attempts", {
    select: `
      SELECT a.*, d.status AS delivery_status, d.purge_at AS delivery_purge_at
        FROM attempts a LEFT JOIN webhook_deliveries d ON d.id = a.delivery_id`,
    shape: { ...ATTEMPT, purge_day: ["int", day] },
    prepare: (partitions, rows) =>
      partitions.ensureDays(new Set(rows.map(day).filter((one) => one !== LIVE_DAY))),
  })
}

const TASKS = step("tasks", {
  shape: TASK,
})

/** As a crash would leave them: the lane's first claim finds them with a token below its own, and logs attempts of unknown outcome. */
const IN_FLIGHT = step("in_flight", {
  select:
    "SELECT f.seq, f.started_at, d.webhook_id FROM in_flight f JOIN webhook_deliveries d ON d.seq = f.seq",
  shape: { seq: "bigint", started_at: "bigint", webhook_id: "text" },
  write: `
    UPDATE lanes SET sending = sending || g.seqs, since = lanes.since || g.since
      FROM (
        SELECT webhook_id, array_agg(seq ORDER BY ord) AS seqs, array_agg(started_at ORDER BY ord) AS since
          FROM x GROUP BY webhook_id
      ) g
     WHERE lanes.id = g.webhook_id`,
  count: "SELECT coalesce(sum(cardinality(sending)), 0)::bigint AS n FROM lanes",
})

/** The generations that are still honoured. */
function idempotency(source: Source, startedAt: number): Step[] {
  const oldest = Math.floor(startedAt / GENERATION_MS) - KEPT_GENERATIONS + 1
  const tables = source.all(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'idempotency_[0-9]*' ORDER BY name",
  )
  const generations = tables.map(({ name }) => Number((name as string).slice("idempotency_".length)))
  return generations
    .filter((generation) => generation >= oldest)
    .map((generation) =>
      step("idempotency", {
        name: `idempotency_${generation}`,
        select: `SELECT * FROM idempotency_${generation}`,
        key: ["key", "app_id"],
        shape: {
          generation: ["int", () => generation],
          app_id: "text",
          key: "bytea",
          message_id: "text",
          digest: "bytea",
        },
        count: `SELECT count(*) AS n FROM idempotency WHERE generation >= ${oldest}`,
        prepare: (partitions) => partitions.ensureGeneration(generation),
      }),
    )
}

export function stepsOf(source: Source, startedAt: number): Step[] {
  return [
    APPLICATIONS,
    ENDPOINTS,
    POLICIES,
    ENTRIES,
    MESSAGES,
    deliveries(startedAt),
    attempts(startedAt),
    TASKS,
    ...idempotency(source, startedAt),
    IN_FLIGHT,
  ]
}
