/** Policies that endpoints refer to by name. */
import { notFound } from "../../core/errors.ts"
import { policyInUse } from "../refusals.ts"
import { orNull, toPolicy } from "../rows.ts"
import {
  DELETE_POLICY,
  FIND_POLICY_USER,
  GET_POLICY,
  LIST_POLICIES,
  PUT_POLICY,
  statement,
} from "../statements.ts"
import type { Operation } from "./context.ts"

/** The endpoints are locked in order of id, so that no two transactions that lock the same ones deadlock. */
const PASS_ON = statement(
  "policies.pass-on",
  `WITH users AS (
     SELECT id FROM endpoints WHERE org_id = $1 AND retry_name = $2 ORDER BY id FOR NO KEY UPDATE
   ), changed AS (
     UPDATE endpoints SET version = version + 1 WHERE id IN (SELECT id FROM users) RETURNING id
   )
   INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM changed`,
)

export const putPolicy: Operation<"putPolicy"> = ({ database }, { orgId, name, policy, updatedAt }) =>
  database.transaction(async (runner) => {
    await runner.run(PUT_POLICY, [orgId, name, policy, updatedAt])
    await runner.run(PASS_ON, [orgId, name])
  })

export const getPolicy: Operation<"getPolicy"> = async ({ database }, orgId, name) =>
  orNull((await database.run(GET_POLICY, [orgId, name]))[0], toPolicy)

export const listPolicies: Operation<"listPolicies"> = async ({ database }, orgId) =>
  (await database.runCalmly(LIST_POLICIES, [orgId])).map(toPolicy)

const LOCK = statement(
  "policies.lock",
  "SELECT name FROM policies WHERE org_id = $1 AND name = $2 FOR UPDATE",
)

/** The lock waits for transactions in which endpoints begin to use the policy, so that the next statement finds those endpoints. */
export const deletePolicyIfUnused: Operation<"deletePolicyIfUnused"> = ({ database }, orgId, name) =>
  database.transaction(async (runner) => {
    await runner.run(LOCK, [orgId, name])
    const [user] = await runner.run(FIND_POLICY_USER, [orgId, name])
    if (user !== undefined) throw policyInUse(name, user.id)
    const deleted = await runner.run(DELETE_POLICY, [orgId, name])
    if (deleted.length === 0) throw notFound("policy", name)
  })
