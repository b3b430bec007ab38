/**
 * Idempotency keys by generation: a table for every twelve hours, so that the index that inserts go to stays small and whole
 * generations are dropped at once. A key is honoured for at least 24 hours.
 */
import type { Context } from "./context.ts"

const GENERATION_MS = 12 * 3600 * 1000
const KEPT_GENERATIONS = 3

export interface KeyUse {
  readonly messageId: string
  readonly digest: Uint8Array
}

export function findKey(context: Context, appId: string, key: Uint8Array, now: number): KeyUse | null {
  const newest = generation(now)
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
  const number = generation(now)
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

/** Drops the generations that have had their time. */
export function forgetOldKeys(context: Context, now: number): void {
  for (const number of generations(context)) {
    if (number > generation(now) - KEPT_GENERATIONS) continue
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

function generation(now: number): number {
  return Math.floor(now / GENERATION_MS)
}

function table(number: number): string {
  return `idempotency_${number}`
}
