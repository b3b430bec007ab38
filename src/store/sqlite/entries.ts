/** Small documents that belong to a tenant: event types, keys, idempotent responses. */
import { ofEntries } from "../conditions.ts"
import { entryConflict } from "../refusals.ts"
import { orNull, toEntry } from "../rows.ts"
import { CREATE_ENTRY, DELETE_ENTRY, GET_ENTRY, UPDATE_ENTRY } from "../statements.ts"
import { SQLITE } from "./conditions.ts"
import type { Operation } from "./context.ts"
import { readPage } from "./page.ts"

export const saveEntryIfUnchanged: Operation<"saveEntryIfUnchanged"> = ({ connection }, entry) => {
  const { kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner = null } = entry
  const saved = connection
    .sql((version === 1 ? CREATE_ENTRY : UPDATE_ENTRY).text)
    .get(kind, name, orgId, body, version, createdAt, updatedAt, expiresAt, owner)
  if (saved === undefined) throw entryConflict(entry)
}

export const getEntry: Operation<"getEntry"> = ({ connection }, kind, orgId, name, now) =>
  orNull(connection.sql(GET_ENTRY.text).get(kind, name, orgId, now), toEntry)

export const getEntries: Operation<"getEntries"> = ({ connection }, kind, names, now) =>
  connection
    .sql(
      `SELECT * FROM entries WHERE kind = ? AND ${SQLITE.oneOf("name")} AND (expires_at IS NULL OR expires_at > ?)`,
    )
    .all(kind, SQLITE.toParameter(names), now)
    .map(toEntry)

export const listEntries: Operation<"listEntries"> = (context, kind, orgId, page, now, owner) => {
  const where = ofEntries(SQLITE, kind, orgId, now).narrow("owner = ?", owner)
  return readPage(context, "SELECT * FROM entries", where, "name", page).map(toEntry)
}

export const deleteEntry: Operation<"deleteEntry"> = ({ connection }, kind, orgId, name) => {
  connection.sql(DELETE_ENTRY.text).run(kind, name, orgId)
}
