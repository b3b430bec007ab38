/** Replays to an endpoint: a message, dead letters, missing messages, or by filter; and cancelling waiting deliveries. */
import type { ReplayQuery } from "../../resources/replays.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { omitNullish } from "../query-params.ts"
import { NoContent, Timestamp, Type } from "../schema.ts"
import { StatusCodeClass, TaskStartedOut } from "../schemas/delivery.ts"
import { StatusNumber } from "../schemas/endpoint.ts"
import { Channel, EndpointId, EventTypeName, MessageId, Tag } from "../schemas/fields.ts"
import { filterOf } from "../views/status.ts"
import { taskStartedOut } from "../views/views.ts"

const tags = ["Endpoint"]
const params = Type.Object(EndpointId)
const startsTask = {
  auth: "app",
  capability: "CreateAttempts",
  tags,
  params,
  response: { 202: TaskStartedOut },
} as const
const PATH = "/app/:app_id/endpoint/:endpoint_id"
const LONGEST_RECOVERY_MS = 14 * 86_400_000

const window = { since: Timestamp, until: Type.Optional(Type.Nullable(Timestamp)) }
const RecoverIn = Type.Named("RecoverIn", Type.Object(window))
const BulkReplayIn = Type.Named(
  "BulkReplayIn",
  Type.Object({
    ...window,
    eventTypes: Type.Optional(Type.Nullable(Type.Array(EventTypeName))),
    channel: Type.Optional(Type.Nullable(Channel)),
    tag: Type.Optional(Type.Nullable(Tag)),
    status: Type.Optional(Type.Nullable(StatusNumber)),
    statusCodeClass: Type.Optional(Type.Nullable(StatusCodeClass)),
  }),
)
const CancelMsgsIn = Type.Named("CancelMsgsIn", Type.Object({ createdBefore: Timestamp }))

function windowOf(body: { since: Date | string; until?: Date | string | null }) {
  const since = new Date(body.since)
  const until = body.until == null ? null : new Date(body.until)
  if (until !== null && until < since) throw ApiError.invalidAt(["body", "until"], "must not be before since")
  return { since, ...(until === null ? {} : { until }) }
}

export const replayRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/app/:app_id/msg/:msg_id/endpoint/:endpoint_id/resend",
    operation("v1.message-attempt.resend", "Send a message to an endpoint again, or for the first time", {
      auth: "app",
      capability: "CreateAttempts",
      tags: ["Message Attempt"],
      params: Type.Object({ ...MessageId, ...EndpointId }),
      response: { 202: Type.Named("EmptyResponse", Type.Object({})) },
    }),
    async (request, reply) => {
      const { app_id, msg_id, endpoint_id } = request.params
      await tenant(request).replays.resend(app_id, msg_id, endpoint_id)
      return reply.code(202).send({})
    },
  )

  app.post(
    `${PATH}/recover`,
    operation("v1.endpoint.recover", "Send what was given up in up to 14 days again", {
      ...startsTask,
      body: RecoverIn,
    }),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const span = windowOf(request.body)
      if (tenant(request).context.clock.now() - span.since.getTime() > LONGEST_RECOVERY_MS)
        throw ApiError.invalidAt(["body", "since"], "must be at most 14 days ago")
      const task = await tenant(request).replays.recover(app_id, endpoint_id, span)
      return reply.code(202).send(taskStartedOut(task))
    },
  )

  app.post(
    `${PATH}/replay-missing`,
    operation(
      "v1.endpoint.replay-missing",
      "Send the messages that the endpoint would have got and has not",
      {
        auth: "app",
        capability: "CreateAttempts",
        tags,
        params,
        body: RecoverIn,
        response: { 202: TaskStartedOut },
      },
    ),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const task = await tenant(request).replays.replayMissing(app_id, endpoint_id, windowOf(request.body))
      return reply.code(202).send(taskStartedOut(task))
    },
  )

  app.post(
    `${PATH}/bulk-replay`,
    operation("v1.endpoint.bulk-replay", "Send whatever fits again, also what was delivered", {
      ...startsTask,
      body: BulkReplayIn,
    }),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const { eventTypes, channel, tag, status, statusCodeClass } = request.body
      const query = omitNullish<ReplayQuery>({
        ...windowOf(request.body),
        eventType: eventTypes,
        channel,
        tag,
        responseClass: statusCodeClass,
        ...filterOf(status ?? undefined),
      })
      const task = await tenant(request).replays.replay(app_id, endpoint_id, query)
      return reply.code(202).send(taskStartedOut(task))
    },
  )

  app.post(
    `${PATH}/cancel-msgs`,
    operation(
      "v1.endpoint.cancel-msgs",
      "Cancel the waiting deliveries of the endpoint that were received before then",
      {
        auth: "app",
        capability: "ManageEndpoint",
        tags,
        params,
        body: CancelMsgsIn,
        response: { 204: NoContent },
      },
    ),
    async (request, reply) => {
      const { app_id, endpoint_id } = request.params
      const until = new Date(request.body.createdBefore)
      await tenant(request).replays.cancelWaiting(app_id, endpoint_id, { until })
      return reply.code(204).send()
    },
  )
}
