/** Small documents that belong to a tenant: event types, keys, answers to requests. */
import { PosthornError } from "../../core/errors.ts"
import { toEntry } from "../rows.ts"
import type { Entry, EntryKind, Page } from "../store.ts"
import { Conditions } from "./conditions.ts"
import type { Context } from "./context.ts"
import { readPage } from "./page.ts"
import type { Statement } from "./statement.ts"

/** In the place of one that has expired, too. */
const CREATE: Statement = {
  name: "entries.create",
  text: `
    INSERT INTO entries (kind, name, org_id, body, version, created_at, updated_at, expires_at, owner)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (kind, name, org_id) DO UPDATE
       SET body = excluded.body, version = excluded.version, created_at = excluded.created_at,
           updated_at = excluded.updated_at, expires_at = excluded.expires_at, owner = excluded.owner
     WHERE entries.expires_at <= excluded.updated_at
    RETURNING version`,
}
const UPDATE: Statement = {
  name: "entries.update",
  text: `
    UPDATE entries SET body = $4, version = $5, created_at = $6, updated_at = $7, expires_at = $8, owner = $9
     WHERE kind = $1 AND name = $2 AND org_id = $3 AND version = $5 - 1
    RETURNING version`,
}

export async function saveEntry({ database }: Context, entry: Entry): Promise<void> {
  const { kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner = null } = entry
  const statement = version === 1 ? CREATE : UPDATE
  const values = [kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner]
  const saved = await database.run(statement, values)
  if (saved.length > 0) return
  const problem =
    version === 1 ? "exists already; read it, and change that" : "was changed by somebody else; read it again"
  throw new PosthornError("conflict", `${kind} "${name}" ${problem}`)
}

const GET: Statement = {
  name: "entries.get",
  text: `
    SELECT * FROM entries
     WHERE kind = $1 AND name = $2 AND ($3::text IS NULL OR org_id = $3) AND (expires_at IS NULL OR expires_at > $4)
     LIMIT 1`,
}

export async function getEntry(
  { database }: Context,
  kind: EntryKind,
  orgId: string | null,
  name: string,
  now: number,
): Promise<Entry | null> {
  const [row] = await database.run(GET, [kind, name, orgId, now])
  return row === undefined ? null : toEntry(row)
}

export async function listEntries(
  context: Context,
  kind: EntryKind,
  orgId: string,
  page: Page<string>,
  now: number,
  owner?: string,
): Promise<Entry[]> {
  const where = new Conditions()
    .narrow("kind = ?", kind)
    .narrow("org_id = ?", orgId)
    .narrow("owner = ?", owner)
    .narrow("(expires_at IS NULL OR expires_at > ?)", now)
  return (await readPage(context, "SELECT * FROM entries", where, "name", page)).map(toEntry)
}

const DELETE: Statement = {
  name: "entries.delete",
  text: "DELETE FROM entries WHERE kind = $1 AND name = $2 AND org_id = $3",
}

export async function deleteEntry(
  { database }: Context,
  kind: EntryKind,
  orgId: string,
  name: string,
): Promise<void> {
  await database.run(DELETE, [kind, name, orgId])
}
