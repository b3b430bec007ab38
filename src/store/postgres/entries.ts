/** Small documents that belong to a tenant: event types, keys, idempotent responses. */
import { ofEntries } from "../conditions.ts"
import { entryConflict } from "../refusals.ts"
import { orNull, toEntry } from "../rows.ts"
import { CREATE_ENTRY, DELETE_ENTRY, GET_ENTRY, statement, UPDATE_ENTRY } from "../statements.ts"
import { POSTGRES } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"

export const saveEntryIfUnchanged: Operation<"saveEntryIfUnchanged"> = async ({ database }, entry) => {
  const { kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner = null } = entry
  const values = [kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner]
  const saved = await database.run(version === 1 ? CREATE_ENTRY : UPDATE_ENTRY, values)
  if (saved.length === 0) throw entryConflict(entry)
}

export const getEntry: Operation<"getEntry"> = async ({ database }, kind, orgId, name, now) =>
  orNull((await database.run(GET_ENTRY, [kind, name, orgId, now]))[0], toEntry)

const GET_ENTRIES = statement(
  "entries.get-many",
  "SELECT * FROM entries WHERE kind = $1 AND name = ANY ($2) AND (expires_at IS NULL OR expires_at > $3)",
)

export const getEntries: Operation<"getEntries"> = async ({ database }, kind, names, now) =>
  (await database.run(GET_ENTRIES, [kind, names, now])).map(toEntry)

export const listEntries: Operation<"listEntries"> = async (context, kind, orgId, page, now, owner) => {
  const where = ofEntries(POSTGRES, kind, orgId, now).narrow("owner = ?", owner)
  return (await readPage(context, "SELECT * FROM entries", where, "name", page)).map(toEntry)
}

export const deleteEntry: Operation<"deleteEntry"> = async ({ database }, kind, orgId, name) => {
  await database.run(DELETE_ENTRY, [kind, name, orgId])
}
