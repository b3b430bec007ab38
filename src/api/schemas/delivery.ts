/** Schemas of deliveries, dead letters, lanes and tasks. */

import { DEAD_REASONS } from "../../core/policy.ts"
import { SVIX_TASK_TYPES, TASK_TYPES } from "../../core/task-types.ts"
import { RESPONSE_CLASSES } from "../../resources/query.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import { Id, NextAttempt, WaitReason } from "./fields.ts"
import { AttemptOut } from "./message.ts"

export const DeliveryStatus = Type.Enum(["pending", "failed", "delivered", "dead"])
export const DeadReason = Type.Enum(DEAD_REASONS)
export const StatusCodeClass = Type.Enum(RESPONSE_CLASSES, { description: "0 for no answer." })

const delivery = {
  id: Id("dlv", "The delivery's id."),
  appId: Id("app", "Its application."),
  endpointId: Id("ep", "Its endpoint."),
  msgId: Id("msg", "Its message."),
  sessionId: Type.Nullable(Type.String()),
  eventType: Type.String(),
  url: Type.String(),
  status: DeliveryStatus,
  deadReason: Type.Nullable(DeadReason),
  attemptCount: Type.Integer(),
  maxAttempts: Type.Nullable(Type.Integer()),
  priority: Type.Enum(["high", "normal", "low"]),
  nextAttempt: NextAttempt,
  waitReason: Type.Nullable(WaitReason),
  lastAttemptedAt: Type.Nullable(Timestamp),
  receivedAt: Timestamp,
  deliveredAt: Type.Nullable(Timestamp),
  discardedAt: Type.Nullable(Timestamp),
  error: Type.Nullable(Type.String()),
}
export const DeliveryOut = Type.Named("DeliveryOut", Type.Object(delivery))
export type DeliveryOut = Static<typeof DeliveryOut>
export const DeliveryDetailOut = Type.Named(
  "DeliveryDetailOut",
  Type.Object({
    ...delivery,
    attempts: Type.Array(AttemptOut, { description: "The newest first; at most 50." }),
  }),
)

const endpointNames = {
  endpointUid: Type.Nullable(Type.String()),
  endpointUrl: Type.Nullable(Type.String({ description: "Where it leads now; null if it was deleted." })),
}

export const DeadGroupOut = Type.Named(
  "DeadGroupOut",
  Type.Object({
    appId: Type.String(),
    endpointId: Type.String(),
    ...endpointNames,
    deadReason: DeadReason,
    error: Type.Nullable(Type.String()),
    count: Type.Integer(),
    oldestAt: Timestamp,
    newestAt: Timestamp,
  }),
)

export const LaneOut = Type.Named(
  "LaneOut",
  Type.Object({
    endpointId: Type.String(),
    ...endpointNames,
    appId: Type.String(),
    reason: WaitReason,
    waiting: Type.Integer({ description: "How many wait for their first attempt." }),
    retrying: Type.Integer({ description: "How many wait for another one." }),
    sending: Type.Integer({ description: "How many requests are in flight." }),
    isLowerBound: Type.Boolean({
      description:
        "More deliveries may wait than were counted: of a bounded read, which stops at 10 000 in a queue.",
    }),
    oldestAt: Timestamp,
    nextDueAt: NextAttempt,
    heldUntil: Type.Nullable(Timestamp),
  }),
)

export const TaskStatus = Type.Named("BackgroundTaskStatus", Type.Enum(["running", "finished", "failed"]))
export const TaskType = Type.Named("TaskType", Type.Enum(TASK_TYPES, { description: "What the task does." }))
export const SvixTaskType = Type.Named("BackgroundTaskType", Type.Enum(SVIX_TASK_TYPES))
const task = {
  id: Id("qtask", "The task's id."),
  status: TaskStatus,
  task: TaskType,
  updatedAt: Timestamp,
}
const data = Type.Object({}, { additionalProperties: true, description: "Its progress, and what it found." })
export const TaskStartedOut = Type.Named("TaskStartedOut", Type.Object(task))
export const TaskOut = Type.Named("TaskOut", Type.Object({ ...task, data }))
export type TaskOut = Static<typeof TaskOut>
export const BackgroundTaskOut = Type.Named(
  "BackgroundTaskOut",
  Type.Object({ ...task, task: SvixTaskType, data }),
)
export type BackgroundTaskOut = Static<typeof BackgroundTaskOut>
