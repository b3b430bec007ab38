/** Policies that endpoints refer to by name. */
import { notFound, PosthornError } from "../../core/errors.ts"
import { toPolicy } from "../rows.ts"
import type { NamedPolicy } from "../store.ts"
import type { Context } from "./context.ts"
import type { Statement } from "./statement.ts"

const PUT: Statement = {
  name: "policies.put",
  text: `
    INSERT INTO policies (org_id, name, policy, updated_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (org_id, name) DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`,
}
/** In order of id: another that locks the same endpoints at this moment does not wait for us while we wait for it. */
const PASS_ON: Statement = {
  name: "policies.pass-on",
  text: `
    WITH users AS (
      SELECT id FROM endpoints WHERE org_id = $1 AND retry_name = $2 ORDER BY id FOR NO KEY UPDATE
    ), changed AS (
      UPDATE endpoints SET version = version + 1 WHERE id IN (SELECT id FROM users) RETURNING id
    )
    INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM changed`,
}

export async function putPolicy({ database }: Context, policy: NamedPolicy): Promise<void> {
  await database.transaction(async (runner) => {
    const { orgId, name, updatedAt } = policy
    await runner.run(PUT, [orgId, name, policy.policy, updatedAt])
    await runner.run(PASS_ON, [orgId, name])
  })
}

const GET: Statement = {
  name: "policies.get",
  text: "SELECT * FROM policies WHERE org_id = $1 AND name = $2",
}

export async function getPolicy(
  { database }: Context,
  orgId: string,
  name: string,
): Promise<NamedPolicy | null> {
  const [row] = await database.run(GET, [orgId, name])
  return row === undefined ? null : toPolicy(row)
}

const LIST: Statement = {
  name: "policies.list",
  text: "SELECT * FROM policies WHERE org_id = $1 ORDER BY name",
}

export async function listPolicies({ database }: Context, orgId: string): Promise<NamedPolicy[]> {
  return (await database.runCalmly(LIST, [orgId])).map(toPolicy)
}

const LOCK: Statement = {
  name: "policies.lock",
  text: "SELECT name FROM policies WHERE org_id = $1 AND name = $2 FOR UPDATE",
}
const USER: Statement = {
  name: "policies.user",
  text: "SELECT id FROM endpoints WHERE org_id = $1 AND retry_name = $2 AND deleted_at IS NULL LIMIT 1",
}
const DELETE: Statement = {
  name: "policies.delete",
  text: "DELETE FROM policies WHERE org_id = $1 AND name = $2",
}

/** The lock waits for endpoints that are just beginning to use it, and the look at the users sees them. */
export async function deletePolicy({ database }: Context, orgId: string, name: string): Promise<void> {
  await database.transaction(async (runner) => {
    const found = await runner.run(LOCK, [orgId, name])
    const [user] = await runner.run(USER, [orgId, name])
    if (user !== undefined)
      throw new PosthornError("conflict", `policy "${name}" is used by endpoint ${user.id}`)
    if (found.length === 0) throw notFound("policy", name)
    await runner.run(DELETE, [orgId, name])
  })
}
