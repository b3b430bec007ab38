/** Brings the file to this program's schema. */
import { PosthornError } from "../../core/errors.ts"
import type { Connection } from "./connection.ts"
import { MIGRATIONS } from "./schema.ts"

/** Safe with two processes at once: the version is read again under the write lock. */
export function migrate({ db }: Connection): void {
  if (userVersion(db) === MIGRATIONS.length) return writeEraStatistics(db)
  db.exec("BEGIN IMMEDIATE")
  try {
    const version = userVersion(db)
    if (version > MIGRATIONS.length) {
      const text = `the file has schema ${version}, this program knows ${MIGRATIONS.length}: it was written by a newer Posthorn; update this one`
      throw new PosthornError("store_incompatible", text)
    }
    for (const sql of MIGRATIONS.slice(version)) db.exec(sql)
    writeEraStatistics(db)
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
    db.exec("COMMIT")
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK")
    throw error
  }
}

function userVersion(db: Connection["db"]): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version
}

const ERAS = "4000000 2048 20 1"

/**
 * SQLite skips from era to era only if its statistics say that an era has many rows. They are written at every start, since an operator's
 * ANALYZE of a nearly empty file overwrites them.
 */
function writeEraStatistics(db: Connection["db"]): void {
  const { current } = db
    .prepare("SELECT count(*) AS current FROM sqlite_stat1 WHERE idx IN (?, ?) AND stat = ?")
    .get("deliveries_endpoint", "attempts_endpoint", ERAS) as { current: number }
  if (current === 2) return
  db.exec(`
    DELETE FROM sqlite_stat1 WHERE idx IN ('deliveries_endpoint', 'attempts_endpoint');
    INSERT INTO sqlite_stat1 VALUES
      ('webhook_deliveries', 'deliveries_endpoint', '${ERAS}'),
      ('attempts', 'attempts_endpoint', '${ERAS}');
    ANALYZE sqlite_schema`)
}
