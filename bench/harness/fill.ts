/**
 * Fills a SQLite file with a million rows in seconds: SQL copies the rows that the library wrote once for each endpoint, while the file
 * is closed. The columns are read from the file, so that new ones are copied too.
 */
import { closeSync, fsyncSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** A column and the expression for its copies. `t` is the row that is copied, `n` the number of the copy. */
type Changes = { readonly [column: string]: string }

/** The differences of the copies of a waiting or delivered message. */
export interface Copies {
  readonly of: "waiting" | "delivered"
  /** The total over all endpoints. */
  readonly count: number
  /** The number of the first message, which is written into the payloads. */
  readonly firstOrdinal: number
  readonly message?: Changes
  readonly delivery?: Changes
}

const STATUS = { waiting: "pending", delivered: "delivered" } as const
const ORDINAL = "printf('%08d', n)"
/** As long as real ids, and they sort as real ids do by time. */
const id = (prefix: string) => `'${prefix}_' || printf('%027d', n)`
const IDS = { message_id: id("msg"), delivery_id: id("dlv") }

export function fill(path: string, copies: readonly Copies[]): void {
  const db = new DatabaseSync(path)
  // No other process has the file open, and a half-filled file is never used.
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
  for (const each of copies)
    db.exec(`CREATE TEMP TABLE ${each.of} AS
      SELECT seq, id, message_id, row_number() OVER (ORDER BY webhook_id) - 1 AS k
        FROM webhook_deliveries WHERE status = '${STATUS[each.of]}' GROUP BY webhook_id`)
  db.exec("BEGIN")
  for (const each of copies) copy(db, each)
  db.exec("COMMIT; PRAGMA journal_mode = WAL")
  db.close()
  syncFile(path)
}

/** Unwritten gigabytes would delay the syncs of the next measurement. The file stays in the system's cache. */
function syncFile(path: string): void {
  const file = openSync(path, "r+")
  fsyncSync(file)
  closeSync(file)
}

function copy(db: DatabaseSync, { of, count, firstOrdinal, message = {}, delivery = {} }: Copies): void {
  const { endpoints } = db.prepare(`SELECT count(*) AS endpoints FROM ${of}`).get() as { endpoints: number }
  const numbers = { endpoints, rows: count / endpoints, firstOrdinal }
  // The number is at the same position in every payload.
  const payload = `CAST(substr(t.payload, 1, 6) || ${ORDINAL} || substr(t.payload, 15) AS BLOB)`
  insert(db, "messages", `t.id = o.message_id`, of, numbers, { id: IDS.message_id, payload, ...message })
  insert(db, "webhook_deliveries", "t.seq = o.seq", of, numbers, {
    id: IDS.delivery_id,
    message_id: IDS.message_id,
    ...delivery,
  })
  insert(db, "attempts", "t.delivery_id = o.id", of, numbers, { id: id("atmpt"), ...IDS })
}

interface Numbers {
  readonly endpoints: number
  readonly rows: number
  readonly firstOrdinal: number
}

function insert(
  db: DatabaseSync,
  table: string,
  isCopied: string,
  of: string,
  { endpoints, rows, firstOrdinal }: Numbers,
  changes: Changes,
): void {
  const columns = (db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== "seq")
  db.exec(`
    WITH RECURSIVE round(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM round WHERE i + 1 < ${rows}),
    numbered AS (SELECT ${firstOrdinal} + i * ${endpoints} + k AS n, o.* FROM round CROSS JOIN ${of} o)
    INSERT INTO ${table} (${columns.join(", ")})
    SELECT ${columns.map((name) => changes[name] ?? `t.${name}`).join(", ")}
      FROM numbered o JOIN ${table} t ON ${isCopied}`)
}
