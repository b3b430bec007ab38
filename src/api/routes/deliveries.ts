/** Deliveries with their attempts, and the lanes they wait in: `/delivery` and `/lane`. */
import { hasCode } from "../../core/errors.ts"
import type { DeliveryQuery, RescheduleInput } from "../../resources/deliveries.ts"
import type { LaneQuery } from "../../resources/lanes.ts"
import type { WaitingQuery } from "../../resources/send-now.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { type ContentParams, contentQuery, omitNullish, pageQuery, toDate } from "../query-params.ts"
import { Timestamp, Type } from "../schema.ts"
import {
  Bounded,
  BoundedLanes,
  BoundedListResponse,
  HttpErrorOut,
  ListResponse,
  PageQuery,
  searchedTo,
} from "../schemas/common.ts"
import {
  DeadReason,
  DeliveryDetailOut,
  DeliveryOut,
  DeliveryStatus,
  LaneOut,
  StatusCodeClass,
  TaskStartedOut,
} from "../schemas/delivery.ts"
import { content } from "../schemas/fields.ts"
import { attemptOut, deliveryOut, listOut, taskStartedOut } from "../views/views.ts"

const tags = ["Delivery"]
const params = Type.Object({ delivery_id: Type.String({ minLength: 1, maxLength: 64 }) })

/** Filters for the deliveries of a tenant. */
export const which = {
  app_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  endpoint_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  msg_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  dead_reason: Type.Optional(DeadReason),
  cause: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        "What the last error begins with, up to a colon, such as `HTTP 500` or `timeout`; `none` for no error.",
    }),
  ),
  status_code_class: Type.Optional(StatusCodeClass),
  ...content,
}

interface DeliveryParams extends ContentParams {
  readonly app_id?: string
  readonly endpoint_id?: string
  readonly msg_id?: string
  readonly dead_reason?: DeliveryQuery["deadReason"]
  readonly cause?: string
  readonly status_code_class?: DeliveryQuery["responseClass"]
}

export function deliveryQuery(query: DeliveryParams): DeliveryQuery {
  return omitNullish<DeliveryQuery>({
    app: query.app_id,
    endpoint: query.endpoint_id,
    message: query.msg_id,
    deadReason: query.dead_reason,
    cause: query.cause,
    responseClass: query.status_code_class,
    ...contentQuery(query),
  })
}

const { dead_reason: _dead, ...whichWait } = which
const waiting = {
  ...whichWait,
  status: Type.Optional(
    Type.Enum(["pending", "failed"], { description: "Only first attempts, or only those tried before." }),
  ),
}
const WaitingFilter = Type.Named("WaitingFilter", Type.Filter(Type.Object(waiting)))

function waitingQuery(query: DeliveryParams & Pick<WaitingQuery, "status">): WaitingQuery {
  const { status } = query
  return { ...deliveryQuery(query), ...omitNullish<WaitingQuery>({ status }) } as WaitingQuery
}

const RescheduleIn = Type.Named(
  "RescheduleIn",
  Type.Object({
    at: Type.Optional(Type.Nullable(Timestamp)),
    delaySeconds: Type.Optional(Type.Nullable(Type.Number({ minimum: 0, description: "From now." }))),
  }),
)

export const deliveryRoutes: Routes = (app, { tenant }) => {
  app.get(
    "/delivery",
    operation("v1.delivery.list", "List deliveries, the newest first", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...PageQuery, ...Bounded, ...which, status: Type.Optional(DeliveryStatus) }),
      response: { 200: BoundedListResponse("ListResponseDeliveryOut", DeliveryOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const { status } = request.query
      const query = { ...deliveryQuery(request.query), ...pageQuery(request.query) }
      const list = await tenant(request).deliveries.list(status === undefined ? query : { ...query, status })
      return listOut(list, deliveryOut)
    },
  )

  app.get(
    "/delivery/:delivery_id",
    operation("v1.delivery.get", "Get a delivery with its attempts and when the next is due", {
      auth: "org",
      tags,
      params,
      response: { 200: DeliveryDetailOut },
    }),
    async (request) => {
      const { deliveries, attempts } = tenant(request)
      const delivery = await deliveries.get(request.params.delivery_id)
      const { data } = await attempts.list({ delivery: delivery.id })
      return {
        ...deliveryOut(delivery),
        attempts: data.map((attempt) => attemptOut(attempt, { content: true, expanded: true })),
      }
    },
  )

  for (const action of ["retry", "cancel"] as const) {
    app.post(
      `/delivery/:delivery_id/${action}`,
      operation(
        `v1.delivery.${action}`,
        action === "retry"
          ? "Send it again from its first attempt, or at once if it waits"
          : "Cancel a waiting delivery",
        { auth: "org", tags, params, response: { 200: DeliveryOut } },
      ),
      async (request) => {
        const { deliveries } = tenant(request)
        const id = request.params.delivery_id
        try {
          return deliveryOut(await deliveries[action](id))
        } catch (error) {
          // The request was repeated after a crash: its first run has cancelled the delivery.
          const before = request.run?.resumed && hasCode(error, "conflict") ? await deliveries.get(id) : null
          if (action !== "cancel" || before?.deadReason !== "cancelled") throw error
          return deliveryOut(before)
        }
      },
    )
  }

  app.post(
    "/delivery/:delivery_id/reschedule",
    operation(
      "v1.delivery.reschedule",
      "Set when a waiting delivery is tried next: at a time, or after a delay",
      { auth: "org", tags, params, body: RescheduleIn, response: { 200: DeliveryOut } },
    ),
    async (request) => {
      const { at, delaySeconds } = request.body
      const input = omitNullish<RescheduleInput>({ at: toDate(at), delaySeconds })
      return deliveryOut(await tenant(request).deliveries.reschedule(request.params.delivery_id, input))
    },
  )

  app.get(
    "/delivery/count-waiting",
    operation("v1.delivery.count-waiting", "How many send-now with the same filter would take: the preview", {
      auth: "org",
      tags,
      querystring: Type.Object({ ...waiting, ...Bounded }),
      response: {
        200: Type.Named("WaitingCountOut", Type.Object({ count: Type.Integer(), ...searchedTo })),
        404: HttpErrorOut,
        409: HttpErrorOut,
      },
    }),
    async (request) => {
      const { deliveries } = tenant(request)
      const query = waitingQuery(request.query)
      if (request.query.bounded) return deliveries.countNewestWaiting(query)
      return { count: await deliveries.countWaiting(query) }
    },
  )

  app.post(
    "/delivery/send-now",
    operation(
      "v1.delivery.send-now",
      "The receiver is back: send the waiting deliveries that match now; also ends Retry-After, circuit breaker, ramp and an empty retry budget",
      {
        auth: "org",
        description:
          "Deliveries that wait become due at once, and a Retry-After that holds them ends. No attempt is counted, and ordered " +
          "endpoints keep their order. First attempts that were set for a later time keep it, and paused and disabled endpoints " +
          "keep their deliveries. The answer is a task.",
        tags,
        body: WaitingFilter,
        response: { 202: TaskStartedOut, 404: HttpErrorOut },
      },
    ),
    async (request, reply) => {
      const task = await tenant(request).deliveries.sendNow(waitingQuery(request.body))
      return reply.code(202).send(taskStartedOut(task))
    },
  )

  app.get(
    "/lane",
    operation("v1.lane.list", "List the endpoints for which something waits: how much, why, and since when", {
      auth: "org",
      tags: ["Lane"],
      querystring: Type.Object({
        ...PageQuery,
        ...BoundedLanes,
        app_id: which.app_id,
        endpoint_id: which.endpoint_id,
      }),
      response: { 200: ListResponse("ListResponseLaneOut", LaneOut), 404: HttpErrorOut },
    }),
    async (request) => {
      const { app_id: app, endpoint_id: endpoint } = request.query
      const query = { ...pageQuery(request.query), ...omitNullish<LaneQuery>({ app, endpoint }) }
      return listOut(await tenant(request).lanes.list(query), (lane) => lane)
    },
  )
}
