/** Small documents that belong to a tenant: event types, keys, answers to requests. */
import { PosthornError } from "../../core/errors.ts"
import { toEntry } from "../rows.ts"
import type { Entry, EntryKind, Page } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { readPage } from "./page.ts"

export function saveEntry({ connection }: Context, entry: Entry): void {
  const { kind, orgId, name, owner = null, version, createdAt, updatedAt, expiresAt, body } = entry
  const values = [version, createdAt, updatedAt, expiresAt, body, kind, orgId, name, owner]
  if (version > 1) {
    const { changes } = connection
      .sql(`
        UPDATE entries SET version = ?1, created_at = ?2, updated_at = ?3, expires_at = ?4, body = ?5, owner = ?9
         WHERE kind = ?6 AND org_id = ?7 AND name = ?8 AND version = ?1 - 1`)
      .run(...values)
    if (changes === 0)
      throw new PosthornError("conflict", `${kind} "${name}" was changed by somebody else; read it again`)
    return
  }
  const { changes } = connection
    .sql(`
      INSERT INTO entries (version, created_at, updated_at, expires_at, body, kind, org_id, name, owner)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE
         SET version = excluded.version, created_at = excluded.created_at, updated_at = excluded.updated_at,
             expires_at = excluded.expires_at, body = excluded.body, owner = excluded.owner
       WHERE entries.expires_at <= excluded.updated_at`)
    .run(...values)
  if (changes === 0)
    throw new PosthornError("conflict", `${kind} "${name}" exists already; read it, and change that`)
}

export function getEntry(
  { connection }: Context,
  kind: EntryKind,
  orgId: string | null,
  name: string,
  now: number,
): Entry | null {
  const where = thoseOf(kind, orgId ?? undefined, now).narrow("name = ?", name)
  const row = connection.sql(`SELECT * FROM entries WHERE ${where} LIMIT 1`).get(...where.values)
  return row === undefined ? null : toEntry(row)
}

export function listEntries(
  context: Context,
  kind: EntryKind,
  orgId: string,
  page: Page<string>,
  now: number,
  owner?: string,
): Entry[] {
  const where = thoseOf(kind, orgId, now).narrow("owner = ?", owner)
  return readPage(context, "SELECT * FROM entries", where, "name", page).map(toEntry)
}

export function deleteEntry({ connection }: Context, kind: EntryKind, orgId: string, name: string): void {
  connection.sql("DELETE FROM entries WHERE kind = ? AND org_id = ? AND name = ?").run(kind, orgId, name)
}

function thoseOf(kind: EntryKind, orgId: string | undefined, now: number): Conditions {
  return new Conditions()
    .narrow("kind = ?", kind)
    .narrow("org_id = ?", orgId)
    .narrow("(expires_at IS NULL OR expires_at > ?)", now)
}
