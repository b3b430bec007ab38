/** The steps of a move, table by table: the rows of SQLite, their order, and the statement that writes them to PostgreSQL. */
import type { SQLOutputValue } from "node:sqlite"
import { generationAt, KEPT_GENERATIONS } from "../store/idempotency.ts"
import { DAY_MS, type Partitions, purgeDay } from "../store/postgres/partitions.ts"
import { KEPT_DAY, LIVE_DAY } from "../store/postgres/schema.ts"
import type { Statement } from "../store/postgres/statement.ts"
import { Bulk, type Shape } from "./bulk.ts"
import { shapeOf } from "./columns.ts"
import type { Source, SourceRow } from "./source.ts"
import type { TargetColumns } from "./target.ts"

export interface Step {
  readonly name: string
  /** The name in the comparison, where the generations of idempotency keys are one table. */
  readonly table: string
  readonly shape: Shape
  /** The rows in SQLite, and the columns that order them. */
  readonly select: string
  readonly key: readonly string[]
  readonly insert: Statement
  /** The FROM clause that finds the rows in PostgreSQL. */
  readonly found: string
  values(rows: readonly SourceRow[]): unknown[]
  /** Creates the partitions of the rows. */
  prepare(partitions: Partitions, rows: readonly SourceRow[]): Promise<void>
}

interface Parts {
  readonly shape: Shape
  readonly key?: readonly string[]
  readonly name?: string
  readonly select?: string
  readonly found?: string
  /** Replaces the insert of all columns; `x` has the rows. */
  readonly write?: (columns: string) => string
  prepare?(partitions: Partitions, rows: readonly SourceRow[]): Promise<void>
}

function step(table: string, parts: Parts): Step {
  const { shape, key = ["seq"], name = table, select = `SELECT * FROM ${table}`, found = table } = parts
  const { prepare = async () => {} } = parts
  const bulk = new Bulk(shape)
  const columns = bulk.names.join(", ")
  const write =
    parts.write?.(columns) ?? `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM x ORDER BY ord`
  const insert = { name: `migrate.${table}`, text: `WITH x AS (${bulk.select})\n${write}` }
  return { name, table, shape, select, key, insert, found, prepare, values: (rows) => bulk.values(rows) }
}

/** Each endpoint has a lane. */
const withLanes = (columns: string) => `, lane AS (INSERT INTO lanes (id, app_id) SELECT id, app_id FROM x)
  INSERT INTO endpoints (${columns}) SELECT ${columns} FROM x`

/** The day of a finished delivery. Rows past their retention go to today's partition, so that no past days need partitions. */
function dayOf(status: SQLOutputValue, purgeAt: SQLOutputValue, startedAt: number): number {
  if (status !== "delivered" && status !== "dead") return KEPT_DAY
  return Math.max(purgeDay(purgeAt as number | null, startedAt), Math.floor(startedAt / DAY_MS))
}

function deliveries(columns: ShapeOf, startedAt: number): Step {
  const day = (row: SourceRow) => dayOf(row.status!, row.purge_at!, startedAt)
  return step("webhook_deliveries", {
    shape: columns("webhook_deliveries", { purge_day: ["int", day] }),
    prepare: (partitions, rows) => partitions.ensureDays(new Set(rows.map(day))),
  })
}

/** An attempt is in the partition of its delivery. */
function attempts(columns: ShapeOf, startedAt: number): Step {
  const day = (row: SourceRow) => {
    const finished = dayOf(row.delivery_status!, row.delivery_purge_at!, startedAt)
    return row.delivery_status === "delivered" || row.delivery_status === "dead" ? finished : LIVE_DAY
  }
  return step("attempts", {
    select: `
      SELECT a.*, d.status AS delivery_status, d.purge_at AS delivery_purge_at
        FROM attempts a LEFT JOIN webhook_deliveries d ON d.id = a.delivery_id`,
    shape: columns("attempts", { purge_day: ["int", day] }),
    prepare: (partitions, rows) =>
      partitions.ensureDays(new Set(rows.map(day).filter((one) => one !== LIVE_DAY))),
  })
}

/** As after a crash: the lane's first claim finds them with an older token and logs attempts of unknown outcome. */
const IN_FLIGHT = step("in_flight", {
  select:
    "SELECT f.seq, f.started_at, d.webhook_id FROM in_flight f JOIN webhook_deliveries d ON d.seq = f.seq",
  shape: { seq: "bigint", started_at: "bigint", webhook_id: "text" },
  write: () => `
    UPDATE lanes SET sending = sending || g.seqs, since = lanes.since || g.since
      FROM (
        SELECT webhook_id, array_agg(seq ORDER BY ord) AS seqs, array_agg(started_at ORDER BY ord) AS since
          FROM x GROUP BY webhook_id
      ) g
     WHERE lanes.id = g.webhook_id`,
  found: `(
    SELECT f.seq, f.started_at, l.id AS webhook_id FROM lanes l, unnest(l.sending, l.since) AS f(seq, started_at)
  ) AS in_flight`,
})

/** Only generations that have not expired. */
function idempotency(source: Source, columns: ShapeOf, startedAt: number): Step[] {
  const oldest = generationAt(startedAt) - KEPT_GENERATIONS + 1
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
        shape: columns("idempotency", { generation: ["int", () => generation] }, `idempotency_${generation}`),
        found: `idempotency WHERE generation = ${generation}`,
        prepare: (partitions) => partitions.ensureGeneration(generation),
      }),
    )
}

type ShapeOf = (table: string, derived?: Shape, inFile?: string) => Shape

export function stepsOf(source: Source, target: TargetColumns, startedAt: number): Step[] {
  const columns: ShapeOf = (table, derived = {}, inFile = table) =>
    shapeOf(table, { source: source.columns(inFile), target: target.get(table) ?? [] }, derived)
  const plain = (table: string, more: Partial<Parts> = {}) => step(table, { shape: columns(table), ...more })
  return [
    plain("applications", { key: ["id"] }),
    plain("endpoints", { key: ["id"], write: withLanes }),
    plain("policies", { key: ["org_id", "name"] }),
    plain("entries", { key: ["kind", "name", "org_id"] }),
    plain("messages"),
    deliveries(columns, startedAt),
    attempts(columns, startedAt),
    plain("attempt_rollups", { key: ["webhook_id", "hour", "event_type", "attempt_number"] }),
    plain("tasks"),
    ...idempotency(source, columns, startedAt),
    IN_FLIGHT,
  ]
}
