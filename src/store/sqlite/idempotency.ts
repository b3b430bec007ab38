/** Idempotency keys, with a table for each generation: the index that inserts go to stays small, and a generation is dropped at once. */
import { generationAt, KEPT_GENERATIONS } from "../idempotency.ts"
import type { Context } from "./context.ts"

export interface KeyUse {
  readonly messageId: string
  readonly digest: Uint8Array
}

export function findKey(context: Context, appId: string, key: Uint8Array, now: number): KeyUse | null {
  const newest = generationAt(now)
  for (const number of generations(context)) {
    if (number <= newest - KEPT_GENERATIONS) continue
    const row = context.connection
      .sql(`SELECT message_id, digest FROM ${table(number)} WHERE key = ? AND app_id = ?`)
      .get(key, appId)
    if (row !== undefined) return { messageId: row.message_id as string, digest: row.digest as Uint8Array }
  }
  return null
}

export function rememberKey(
  context: Context,
  appId: string,
  key: Uint8Array,
  use: KeyUse,
  now: number,
): void {
  const number = generationAt(now)
  if (!generations(context).includes(number)) {
    context.connection.db.exec(
      `CREATE TABLE ${table(number)} (key BLOB, app_id TEXT, message_id TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (key, app_id)) STRICT, WITHOUT ROWID`,
    )
    context.idempotencyGenerations = null
  }
  context.connection
    .sql(`INSERT INTO ${table(number)} VALUES (?, ?, ?, ?)`)
    .run(key, appId, use.messageId, use.digest)
}

/** Drops generations that are too old to be honoured. */
export function forgetOldKeys(context: Context, now: number): void {
  for (const number of generations(context)) {
    if (number > generationAt(now) - KEPT_GENERATIONS) continue
    context.connection.db.exec(`DROP TABLE ${table(number)}`)
    context.idempotencyGenerations = null
  }
}

function generations(context: Context): readonly number[] {
  context.idempotencyGenerations ??= context.connection.db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'idempotency_[0-9]*'")
    .all()
    .map((row) => Number((row.name as string).slice("idempotency_".length)))
  return context.idempotencyGenerations
}

function table(number: number): string {
  return `idempotency_${number}`
}
