/** Endpoints: where webhooks go. Each has a lane, which every change wakes: the change may end what held it. */
import { notFound } from "../../core/errors.ts"
import { FIRST_ATTEMPT_RANKS, selectActivity } from "../activity.ts"
import { endpointValues } from "../columns.ts"
import { ofEndpoints } from "../conditions.ts"
import { endpointChanged, endpointNotDisabled, endpointUidTaken } from "../refusals.ts"
import { orNull, patchEndpoint, toActivity, toEndpoint, toGate } from "../rows.ts"
import {
  GET_ENDPOINT,
  INSERT_ENDPOINT,
  READ_ENDPOINT,
  SELECT_ENDPOINTS,
  statement,
  UPDATE_ENDPOINT,
} from "../statements.ts"
import type { Endpoint, EndpointPatch, Task } from "../store.ts"
import { POSTGRES } from "./conditions.ts"
import type { Context, Operation } from "./context.ts"
import { orRefuse } from "./errors.ts"
import { readPage } from "./page.ts"
import { insertTask } from "./tasks.ts"

const CREATE = statement(
  "endpoints.create",
  `WITH lane AS (INSERT INTO lanes (id, app_id) VALUES ($1, $2)) ${INSERT_ENDPOINT}`,
)

/** Locked until the end of the transaction, so that a policy is not deleted while an endpoint begins to use it. */
const LOCK_POLICY = statement(
  "endpoints.lock-policy",
  "SELECT name FROM policies WHERE org_id = $1 AND name = $2 FOR KEY SHARE",
)

export const createEndpoint: Operation<"createEndpoint"> = ({ database }, endpoint) =>
  orRefuse(
    () => endpointUidTaken(endpoint.uid),
    () =>
      database.transaction(async (runner) => {
        const { orgId, retryName } = endpoint
        if (retryName !== null) await runner.run(LOCK_POLICY, [orgId, retryName])
        await runner.run(CREATE, endpointValues(endpoint))
      }),
  )

export const getEndpoint: Operation<"getEndpoint"> = async ({ database }, appId, key) =>
  orNull((await database.run(GET_ENDPOINT, [appId, key]))[0], toEndpoint)

const GET_MANY = statement("endpoints.get-many", `${SELECT_ENDPOINTS} WHERE e.id = ANY ($1)`)

export const getEndpoints: Operation<"getEndpoints"> = async ({ database }, ids) =>
  (await database.runCalmly(GET_MANY, [ids])).map(toEndpoint)

/** The head of an ordered lane is one probe of deliveries_live_line. */
const GET_GATES = statement(
  "endpoints.get-gates",
  `SELECT e.id, e.url, e.deleted_at IS NOT NULL AS deleted, e.disabled, e.paused, e.hold_until, e.breaker_until, e.protection, h.seq AS head, h.next_retry_at AS head_due
     FROM endpoints e
     LEFT JOIN LATERAL (
       SELECT d.seq, d.next_retry_at FROM webhook_deliveries_live d WHERE d.webhook_id = e.id AND d.rank = 0 ORDER BY d.seq LIMIT 1
     ) h ON true
    WHERE e.id = ANY ($1)`,
)

export const getGates: Operation<"getGates"> = async ({ database }, ids) =>
  (await database.runCalmly(GET_GATES, [ids])).map(toGate)

const FIRST_ATTEMPTS = FIRST_ATTEMPT_RANKS.map(
  (rank) => `
    SELECT greatest(d.received_at, d.next_retry_at) AS at FROM webhook_deliveries_live d
     WHERE d.webhook_id = i.id AND d.rank = ${rank} AND coalesce(d.next_retry_at, 0) <= $2
     ORDER BY coalesce(d.next_retry_at, 0), d.seq LIMIT 1`,
)
const RETRY = `
  SELECT d.received_at AS at FROM webhook_deliveries_live d
   WHERE d.webhook_id = i.id AND d.attempt_count > 0 ORDER BY d.received_at LIMIT 1`
const GET_ACTIVITY = statement(
  "endpoints.get-activity",
  `${selectActivity("endpoints", [...FIRST_ATTEMPTS, RETRY])} WHERE i.id = ANY ($1)`,
)

export const getActivity: Operation<"getActivity"> = async ({ database }, ids, now) =>
  (await database.runCalmly(GET_ACTIVITY, [ids, now])).map(toActivity)

export const listEndpoints: Operation<"listEndpoints"> = async (context, filter, page) =>
  (await readPage(context, SELECT_ENDPOINTS, ofEndpoints(POSTGRES, filter), "e.id", page)).map(toEndpoint)

/** Before the endpoint, in the order in which a change of a policy locks them. */
const LOCK_POLICY_OF = statement(
  "endpoints.lock-policy-of",
  `SELECT p.name FROM endpoints e JOIN policies p ON p.org_id = e.org_id
    WHERE e.id = $1 AND p.name = $2 FOR KEY SHARE OF p`,
)
const LOCK = statement(
  "endpoints.lock",
  `${SELECT_ENDPOINTS} WHERE e.id = $1 AND e.deleted_at IS NULL FOR NO KEY UPDATE OF e`,
)
const UPDATE = statement(
  "endpoints.update",
  `WITH woken AS (INSERT INTO lane_wakes (lane_id, due_at) VALUES ($1, 0)) ${UPDATE_ENDPOINT}`,
)
/** Waiting deliveries move between the ordered line and the queues; finished rows keep what they were. */
const LINE_UP = statement(
  "endpoints.line-up",
  "UPDATE webhook_deliveries_live SET ordered = $2 WHERE webhook_id = $1 AND ordered <> $2 AND NOT dated",
)

export const updateEndpoint: Operation<"updateEndpoint"> = (context, id, patch, now) =>
  update(context, id, patch, now)

export const updateEndpointIfVersion: Operation<"updateEndpointIfVersion"> = (
  context,
  id,
  patch,
  now,
  version,
) =>
  update(context, id, patch, now, (before) => {
    if (version !== before.version) throw endpointChanged(id)
  })

export const enableEndpointIfDisabled: Operation<"enableEndpointIfDisabled"> = (context, id, now, tasks) =>
  update(
    context,
    id,
    { disabled: false },
    now,
    ({ disabled }) => {
      if (!disabled) throw endpointNotDisabled(id)
    },
    tasks,
  )

/** `guard` refuses the update by throwing. The tasks follow from it, in its transaction. */
function update(
  { database }: Context,
  id: string,
  patch: EndpointPatch,
  now: number,
  guard: (before: Endpoint) => void = () => {},
  tasks: readonly Task[] = [],
): Promise<Endpoint> {
  return orRefuse(
    () => endpointUidTaken(patch.uid),
    () =>
      database.transactionCalmly(async (runner) => {
        if (typeof patch.retryName === "string") await runner.run(LOCK_POLICY_OF, [id, patch.retryName])
        const [row] = await runner.run(LOCK, [id])
        if (row === undefined) throw notFound("endpoint", id)
        const before = toEndpoint(row)
        guard(before)
        const after = patchEndpoint(before, patch, now)
        // First, since it may take long: the update locks out changes to the application's other endpoints.
        if (after.ordered !== before.ordered) await runner.run(LINE_UP, [id, after.ordered])
        await runner.run(UPDATE, endpointValues(after))
        for (const task of tasks) await insertTask(runner, task)
        const [read] = await runner.run(READ_ENDPOINT, [id])
        return toEndpoint(read!)
      }),
  )
}

const DELETE = statement(
  "endpoints.delete",
  `WITH gone AS (
     UPDATE endpoints SET deleted_at = $2, version = version + 1 WHERE id = $1 AND deleted_at IS NULL RETURNING id
   )
   INSERT INTO lane_wakes (lane_id, due_at) SELECT id, 0 FROM gone RETURNING lane_id`,
)

export const deleteEndpoint: Operation<"deleteEndpoint"> = ({ database }, id, task) =>
  database.transaction(async (runner) => {
    const gone = await runner.run(DELETE, [id, task.createdAt])
    if (gone.length === 0) throw notFound("endpoint", id)
    await insertTask(runner, task)
  })
