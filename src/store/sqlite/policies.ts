/** Policies that endpoints refer to by name. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { toPolicy } from "../rows.ts"
import type { NamedPolicy } from "../store.ts"
import type { Context } from "./context.ts"

export function putPolicy(context: Context, { orgId, name, policy, updatedAt }: NamedPolicy): void {
  const { connection } = context
  connection
    .sql(`
      INSERT INTO policies (org_id, name, policy, updated_at) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`)
    .run(orgId, name, policy, updatedAt)
  connection
    .sql("UPDATE endpoints SET version = version + 1 WHERE org_id = ? AND retry_name = ?")
    .run(orgId, name)
  context.forget()
}

export function getPolicy({ connection }: Context, orgId: string, name: string): NamedPolicy | null {
  const row = connection.sql("SELECT * FROM policies WHERE org_id = ? AND name = ?").get(orgId, name)
  return row === undefined ? null : toPolicy(row)
}

export function listPolicies({ connection }: Context, orgId: string): NamedPolicy[] {
  return connection.sql("SELECT * FROM policies WHERE org_id = ? ORDER BY name").all(orgId).map(toPolicy)
}

export function deletePolicy({ connection }: Context, orgId: string, name: string): void {
  const user = connection
    .sql("SELECT id FROM endpoints WHERE org_id = ? AND retry_name = ? AND deleted_at IS NULL LIMIT 1")
    .get(orgId, name)
  if (user !== undefined)
    throw new PosthornError("conflict", `policy "${name}" is used by endpoint ${user.id}`)
  const { changes } = connection.sql("DELETE FROM policies WHERE org_id = ? AND name = ?").run(orgId, name)
  if (changes === 0) throw notFound("policy", name)
}
