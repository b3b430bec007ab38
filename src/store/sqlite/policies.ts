/** Policies that endpoints refer to by name. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { toPolicy } from "../rows.ts"
import type { NamedPolicy } from "../store.ts"
import type { Context } from "./context.ts"

export function putPolicy({ connection }: Context, { name, policy, updatedAt }: NamedPolicy): void {
  connection
    .sql(`
      INSERT INTO policies (name, policy, updated_at) VALUES (?, ?, ?)
      ON CONFLICT DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`)
    .run(name, policy, updatedAt)
  connection.sql("UPDATE endpoints SET version = version + 1 WHERE retry_name = ?").run(name)
}

export function getPolicy({ connection }: Context, name: string): NamedPolicy | null {
  const row = connection.sql("SELECT * FROM policies WHERE name = ?").get(name)
  return row === undefined ? null : toPolicy(row)
}

export function listPolicies({ connection }: Context): NamedPolicy[] {
  return connection.sql("SELECT * FROM policies ORDER BY name").all().map(toPolicy)
}

export function deletePolicy({ connection }: Context, name: string): void {
  const user = connection
    .sql("SELECT id FROM endpoints WHERE retry_name = ? AND deleted_at IS NULL LIMIT 1")
    .get(name)
  if (user !== undefined)
    throw new PosthornError("conflict", `policy "${name}" is used by endpoint ${user.id}`)
  if (connection.sql("DELETE FROM policies WHERE name = ?").run(name).changes === 0)
    throw notFound("policy", name)
}
