/** Policies that endpoints refer to by name. */
import { notFound } from "../../core/errors.ts"
import { policyInUse } from "../refusals.ts"
import { orNull, toPolicy } from "../rows.ts"
import { DELETE_POLICY, FIND_POLICY_USER, GET_POLICY, LIST_POLICIES, PUT_POLICY } from "../statements.ts"
import type { Operation } from "./context.ts"

export const putPolicy: Operation<"putPolicy"> = (context, { orgId, name, policy, updatedAt }) => {
  const { connection } = context
  connection.sql(PUT_POLICY.text).run(orgId, name, policy, updatedAt)
  connection
    .sql("UPDATE endpoints SET version = version + 1 WHERE org_id = ? AND retry_name = ?")
    .run(orgId, name)
  context.forget()
}

export const getPolicy: Operation<"getPolicy"> = ({ connection }, orgId, name) =>
  orNull(connection.sql(GET_POLICY.text).get(orgId, name), toPolicy)

export const listPolicies: Operation<"listPolicies"> = ({ connection }, orgId) =>
  connection.sql(LIST_POLICIES.text).all(orgId).map(toPolicy)

export const deletePolicyIfUnused: Operation<"deletePolicyIfUnused"> = ({ connection }, orgId, name) => {
  const user = connection.sql(FIND_POLICY_USER.text).get(orgId, name)
  if (user !== undefined) throw policyInUse(name, user.id)
  if (connection.sql(DELETE_POLICY.text).get(orgId, name) === undefined) throw notFound("policy", name)
}
