/** Schemas of messages and attempts. */
import { type Static, Timestamp, Type } from "../schema.ts"
import { ApplicationIn } from "./application.ts"
import { progress, StatusNumber, StatusText } from "./endpoint.ts"
import { Channels, EventTypeName, Id, Metadata, Tags, Uid } from "./fields.ts"

const Priority = Type.Enum(["high", "normal", "low"])

const message = {
  eventType: EventTypeName,
  payload: Type.Optional(Type.Unknown({ description: "What is sent, as JSON." })),
  data: Type.Optional(Type.Unknown({ description: "Another name for payload." })),
  eventId: Type.Optional(Type.Nullable(Uid)),
  channels: Type.Optional(Type.Nullable(Channels)),
  tags: Type.Optional(Type.Nullable(Tags)),
  deliverAt: Type.Optional(Type.Nullable(Timestamp)),
  delaySeconds: Type.Optional(
    Type.Number({ minimum: 0, maximum: 315_360_000, description: "Not before so many seconds from now." }),
  ),
  payloadRetentionPeriod: Type.Optional(
    Type.Nullable(
      Type.Integer({ minimum: 1, maximum: 90, description: "Days after which the payload is removed." }),
    ),
  ),
  payloadRetentionHours: Type.Optional(
    Type.Nullable(
      Type.Integer({ minimum: 1, maximum: 2160, description: "The same in hours, instead of days." }),
    ),
  ),
  transformationsParams: Type.Optional(
    Type.Nullable(
      Type.Object({
        rawPayload: Type.Optional(Type.String({ description: "Sent as it is, instead of the payload." })),
        headers: Type.Optional(
          Type.Object({ "content-type": Type.Optional(Type.String({ maxLength: 255 })) }),
        ),
      }),
    ),
  ),
  sessionId: Type.Optional(Type.String({ maxLength: 256 })),
  metadata: Type.Optional(Metadata),
  maxAttempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  priority: Type.Optional(Priority),
}
const application = Type.Optional(Type.Nullable(ApplicationIn))

const examples = [{ eventType: "invoice.paid", payload: { invoice: 17 } }]

export const MessageIn = Type.Named("MessageIn", Type.Object({ ...message, application }, { examples }))
export type MessageIn = Static<typeof MessageIn>

export const BatchIn = Type.Named(
  "MessageBatchIn",
  Type.Object({
    messages: Type.Array(Type.Named("BatchMessageIn", Type.Object(message, { examples })), {
      minItems: 1,
      maxItems: 1000,
    }),
    application,
  }),
)

const shown = {
  id: Id("msg", "The message's id: what receivers get as webhook-id."),
  eventType: EventTypeName,
  eventId: Type.Optional(Type.Nullable(Uid)),
  payload: Type.Unknown({
    description: '`{}` when content was not asked for, `{"expired": true}` when it was removed.',
  }),
  channels: Type.Nullable(Type.Array(Type.String())),
  tags: Type.Nullable(Type.Array(Type.String())),
  timestamp: Timestamp,
  deliverAt: Type.Optional(Type.Nullable(Timestamp)),
}

const HeaderPair = Type.Array(Type.String(), {
  minItems: 2,
  maxItems: 2,
  examples: [["X-GitHub-Event", "push"]],
})

const InboundRequestOut = Type.Named(
  "InboundRequestOut",
  Type.Object(
    {
      sourceId: Type.String({ description: "The source's id." }),
      method: Type.String(),
      path: Type.String({ description: "Behind the source's URL, percent-encoded as it came." }),
      query: Type.String({ description: "As it came: empty, or with a leading question mark." }),
      headers: Type.Array(HeaderPair, { description: "Names and values, in their order." }),
      sensitive: Type.Array(Type.String(), {
        description: "The names of headers that may contain credentials. Their values are not shown.",
      }),
    },
    {
      description:
        "Of a message that came through a source: the request, without its body, which is the payload. Only keys of the whole organization see it.",
    },
  ),
)
export type InboundRequestOut = Static<typeof InboundRequestOut>

export const MessageOut = Type.Named(
  "MessageOut",
  Type.Object({
    ...shown,
    sessionId: Type.Optional(Type.Nullable(Type.String())),
    metadata: Type.Optional(Metadata),
    priority: Type.Optional(Priority),
    matched: Type.Optional(Type.Integer({ description: "How many endpoints get it." })),
    inbound: Type.Optional(InboundRequestOut),
  }),
)
export type MessageOut = Static<typeof MessageOut>

export const BatchOut = Type.Named("MessageBatchOut", Type.Object({ data: Type.Array(MessageOut) }))

export const EndpointMessageOut = Type.Named("EndpointMessageOut", Type.Object({ ...shown, ...progress }))
export type EndpointMessageOut = Static<typeof EndpointMessageOut>

const phase = (description: string) => Type.Nullable(Type.Integer({ description }))
const AttemptTimingOut = Type.Named(
  "AttemptTimingOut",
  Type.Object(
    {
      dnsMs: phase("Name resolution. 0 for an address, and for a name that was resolved a moment before."),
      connectMs: phase("From the addresses to an open connection."),
      tlsMs: phase("The TLS handshake."),
      firstByteMs: phase("From the open connection to the first byte of the answer."),
    },
    {
      description:
        "How long the phases took, one after the other. A phase that did not happen is null: on a reused connection all but the last. Null for agents and older attempts.",
    },
  ),
)

export const AttemptOut = Type.Named(
  "AttemptOut",
  Type.Object({
    id: Id("atmpt", "The attempt's id."),
    msgId: Id("msg", "The message's id."),
    endpointId: Id("ep", "The endpoint's id."),
    deliveryId: Type.String(),
    url: Type.String(),
    response: Type.String({
      description: "The start of the answer, or why there was none; `{}` when content was not asked for.",
    }),
    error: Type.Nullable(
      Type.String({
        description:
          "Why no complete answer came, such as `timeout` or `connection_reset`, also where the answer has a status. Null for a complete answer.",
      }),
    ),
    responseStatusCode: Type.Integer({ description: "0 when no answer came." }),
    responseDurationMs: Type.Integer(),
    timing: Type.Nullable(AttemptTimingOut),
    status: StatusNumber,
    statusText: StatusText,
    triggerType: Type.Integer({ description: "0 by the schedule, 1 by hand." }),
    timestamp: Timestamp,
    msg: Type.Optional(Type.Nullable(MessageOut)),
  }),
)
export type AttemptOut = Static<typeof AttemptOut>
