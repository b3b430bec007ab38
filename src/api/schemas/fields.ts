/** Schemas of fields. */
import { WAIT_REASONS } from "../../core/wait.ts"
import { Timestamp, Type } from "../schema.ts"

export const Id = (prefix: string, what: string) =>
  Type.String({ description: what, pattern: `^${prefix}_[A-Za-z0-9]{27}$` })

const NAME = "^[a-zA-Z0-9\\-_.]+$"
export const Uid = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: NAME,
  description: "Your own id for it; accepted wherever its id is.",
})
export const EventTypeName = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: NAME,
  description: "The name of an event type, such as invoice.paid.",
})
export const Channel = Type.String({ minLength: 1, maxLength: 128, pattern: "^[a-zA-Z0-9\\-_.:+]+$" })
export const Tag = Type.String({ minLength: 1, maxLength: 128, pattern: "^[a-zA-Z0-9\\-_./\\\\#]+$" })
export const Metadata = Type.Record(Type.String(), {
  description: "Up to 50 texts of your own.",
})
export const ThrottleRate = Type.Integer({
  minimum: 1,
  maximum: 65_535,
  description: "The most requests in any second.",
})

export const EventTypeNames = Type.Array(EventTypeName, { minItems: 1, uniqueItems: true })
export const Channels = Type.Array(Channel, { minItems: 1, maxItems: 10, uniqueItems: true })
export const Tags = Type.Array(Tag, { maxItems: 20, uniqueItems: true })

/** Filters of messages, deliveries and attempts. */
export const content = {
  event_types: Type.Optional(Type.Array(EventTypeName)),
  channel: Type.Optional(Channel),
  tag: Type.Optional(Tag),
  before: Type.Optional(Timestamp),
  after: Type.Optional(Timestamp),
}

export const AppId = {
  app_id: Type.String({ minLength: 1, maxLength: 256, description: "The application's id or uid." }),
}
export const EndpointId = {
  ...AppId,
  endpoint_id: Type.String({ minLength: 1, maxLength: 256, description: "The endpoint's id or uid." }),
}
export const MessageId = {
  ...AppId,
  msg_id: Type.String({ minLength: 1, maxLength: 256, description: "The message's id or its event id." }),
}

export const WaitReason = Type.Enum(WAIT_REASONS, {
  description:
    "Why it waits: its request is in flight, its turn comes next, the sender gave a later time, the delay after a failure, another delivery of an ordered endpoint goes first, a Retry-After holds it, its circuit breaker is open, its retry budget is spent, its agent is not connected, or its endpoint is paused, disabled or deleted.",
})
export const NextAttempt = Type.Nullable({
  ...Timestamp,
  description:
    "When the next attempt can start at the earliest; null when none follows, when it is in flight, and while the endpoint is paused or disabled. With the reason `agent`, when it is given up unless the agent connects before.",
})
