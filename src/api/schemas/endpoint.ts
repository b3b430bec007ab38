/** Schemas of endpoints: Svix's fields and Posthorn's own. */
import { DISABLE_REASONS } from "../../core/gate.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import {
  Channels,
  EventTypeNames,
  Id,
  Metadata,
  NextAttempt,
  ThrottleRate,
  Uid,
  WaitReason,
} from "./fields.ts"
import { PolicyOut, Retry } from "./policy.ts"

export const Headers = Type.Record(Type.String())
const Secret = Type.String({
  maxLength: 512,
  description:
    "`whsec_` and base64 of 24 to 64 bytes (the base64 alone will do), or `whsk_` for ed25519; made for you when left out.",
})

const Basic = Type.Object({ type: Type.Enum(["basic"]), username: Type.String(), password: Type.String() })
const Bearer = Type.Object({ type: Type.Enum(["bearer"]), token: Type.String() })
const OAuth2 = Type.Object({
  type: Type.Enum(["oauth2"]),
  tokenUrl: Type.String(),
  clientId: Type.String(),
  clientSecret: Type.String(),
  scope: Type.Optional(Type.String()),
  audience: Type.Optional(Type.String()),
})
const Pem = Type.Optional(Type.String({ maxLength: 65_536 }))

const updatable = {
  url: Type.String({ minLength: 1, maxLength: 4096, description: "http or https." }),
  description: Type.Optional(Type.String({ maxLength: 4096 })),
  throttleRate: Type.Optional(Type.Nullable(ThrottleRate)),
  rateLimit: Type.Optional(Type.Nullable(ThrottleRate)),
  uid: Type.Optional(Type.Nullable(Uid)),
  version: Type.Optional(
    Type.Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 65_535,
        deprecated: true,
        description: "A number of your own: kept, and without an effect.",
      }),
    ),
  ),
  disabled: Type.Optional(Type.Boolean()),
  eventTypes: Type.Optional(Type.Nullable(EventTypeNames)),
  filterTypes: Type.Optional(Type.Nullable(EventTypeNames)),
  channels: Type.Optional(Type.Nullable(Channels)),
  metadata: Type.Optional(Metadata),
  retry: Type.Optional(Retry),
  ordered: Type.Optional(
    Type.Boolean({ description: "Message N+1 is not sent before N is delivered or dead." }),
  ),
  concurrency: Type.Optional(Type.Nullable(Type.Integer({ minimum: 1, maximum: 1000 }))),
  auth: Type.Optional(
    Type.Nullable(
      Type.Union([Basic, Bearer, OAuth2], { description: "Kept encrypted and never shown again." }),
    ),
  ),
  tls: Type.Optional(
    Type.Nullable(
      Type.Object(
        { cert: Pem, key: Pem, ca: Pem },
        { description: "Client certificate (cert, key) and authorities (ca) as PEM; never shown again." },
      ),
    ),
  ),
}

export const EndpointIn = Type.Named(
  "EndpointIn",
  Type.Object({
    ...updatable,
    secret: Type.Optional(Type.Nullable(Secret)),
    headers: Type.Optional(Type.Nullable(Headers)),
  }),
)
export const EndpointUpdate = Type.Named(
  "EndpointUpdate",
  Type.Object({ ...updatable, headers: Type.Optional(Type.Nullable(Headers)) }),
)
export const EndpointPatch = Type.Named(
  "EndpointPatch",
  Type.Object({
    ...updatable,
    url: Type.Optional(updatable.url),
    secret: Type.Optional(Type.Nullable(Secret)),
  }),
)
export type EndpointIn = Static<typeof EndpointIn>
export type EndpointPatch = Static<typeof EndpointPatch>

const DisabledReason = Type.Nullable(
  Type.Enum(DISABLE_REASONS, {
    description: "`gone`: the receiver answered 410. `failing`: it had no success for too long.",
  }),
)
const shown = {
  id: Id("ep", "The endpoint's id."),
  url: Type.String(),
  description: Type.String(),
  throttleRate: Type.Nullable(ThrottleRate),
  rateLimit: Type.Nullable(ThrottleRate),
  uid: Type.Nullable(Uid),
  version: Type.Integer(),
  disabled: Type.Boolean(),
  eventTypes: Type.Nullable(EventTypeNames),
  filterTypes: Type.Nullable(EventTypeNames),
  channels: Type.Nullable(Channels),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

export const EndpointOut = Type.Named(
  "EndpointOut",
  Type.Object({
    ...shown,
    metadata: Metadata,
    retry: Type.Nullable(Type.String({ description: "The name of its policy." })),
    policy: PolicyOut,
    ordered: Type.Boolean(),
    concurrency: Type.Nullable(Type.Integer()),
    paused: Type.Boolean(),
    heldUntil: Type.Nullable(Timestamp),
    pausedAt: Type.Nullable(Timestamp),
    disabledAt: Type.Nullable(Timestamp),
    disabledReason: DisabledReason,
    breaker: Type.Object(
      {
        state: Type.Enum(["closed", "open", "half_open", "ramping"]),
        until: Type.Nullable(Timestamp),
      },
      { description: "The circuit breaker, and until when it is open." },
    ),
    budget: Type.Nullable(
      Type.Object(
        {
          tokens: Type.Integer(),
          left: Type.Integer({ description: "How many of the tokens are left." }),
          retriesAt: Type.Nullable({ ...Timestamp, description: "Until when retries wait for tokens." }),
        },
        { description: "The retry budget; null if the policy has none." },
      ),
    ),
  }),
)
export type EndpointOut = Static<typeof EndpointOut>

export const MESSAGE_STATUSES = ["success", "pending", "fail", "sending", "canceled"] as const
export const StatusNumber = Type.Integer({
  minimum: 0,
  maximum: 4,
  description: "0 success, 1 pending, 2 fail, 3 sending, 4 canceled.",
})
export const StatusText = Type.Enum(MESSAGE_STATUSES)

/** The status of a message at an endpoint. */
export const progress = {
  status: StatusNumber,
  statusText: StatusText,
  nextAttempt: Type.Optional(NextAttempt),
  waitReason: Type.Optional(WaitReason),
  deliveryId: Type.String(),
  deliveryStatus: Type.Enum(["pending", "failed", "delivered", "dead"], {
    description: "The delivery's own status, which Svix's five statuses stand for.",
  }),
}

export const MessageEndpointOut = Type.Named("MessageEndpointOut", Type.Object({ ...shown, ...progress }))
export type MessageEndpointOut = Static<typeof MessageEndpointOut>

export const EndpointSecretOut = Type.Named(
  "EndpointSecretOut",
  Type.Object({
    key: Type.String({
      description:
        "What receivers verify with: `whsec_…`, or `whpk_…`, the public half of an ed25519 key. A private key is never given out.",
    }),
  }),
)
export const EndpointSecretRotateIn = Type.Named(
  "EndpointSecretRotateIn",
  Type.Object({
    key: Type.Optional(Type.Nullable(Secret)),
    gracePeriodSeconds: Type.Optional(
      Type.Nullable(
        Type.Integer({
          minimum: 0,
          maximum: 2_592_000,
          description: "How long the old one signs too; a day.",
        }),
      ),
    ),
  }),
)
export const EndpointHeadersIn = Type.Named("EndpointHeadersIn", Type.Object({ headers: Headers }))
export const EndpointHeadersPatchIn = Type.Named(
  "EndpointHeadersPatchIn",
  Type.Object({
    headers: Type.Optional(Type.Record(Type.Nullable(Type.String()))),
    deleteHeaders: Type.Optional(Type.Array(Type.String())),
  }),
)
export const EndpointHeadersOut = Type.Named(
  "EndpointHeadersOut",
  Type.Object({
    headers: Headers,
    sensitive: Type.Array(Type.String({ description: "Set, and not shown." })),
  }),
)
export const EndpointStatsOut = Type.Named(
  "EndpointStatsOut",
  Type.Object({
    success: Type.Integer(),
    pending: Type.Integer(),
    sending: Type.Integer(),
    fail: Type.Integer(),
    canceled: Type.Integer(),
  }),
)
export const EndpointAttemptStats = Type.Named(
  "EndpointAttemptStats",
  Type.Object({
    success: Type.Integer(),
    fail: Type.Integer({ description: "Those of unknown outcome among them, as in the list of attempts." }),
    canceled: Type.Integer({ description: "Always 0: a message can be called off, a request cannot." }),
  }),
)

export const EnableIn = Type.Named(
  "EndpointEnableIn",
  Type.Object({
    held: Type.Optional(
      Type.Nullable(
        Type.Enum(["send", "discard"], {
          description: "What becomes of the waiting deliveries; `send` unless set.",
        }),
      ),
    ),
    missed: Type.Optional(
      Type.Nullable(
        Type.Enum(["replay", "leave"], {
          description:
            "What becomes of the messages that were sent while the endpoint was disabled; `leave` unless set.",
        }),
      ),
    ),
  }),
)
const counts = {
  disabledAt: Type.Nullable(Timestamp),
  disabledReason: DisabledReason,
  held: Type.Integer({ description: "Waiting deliveries of the endpoint." }),
  heldIsLowerBound: Type.Boolean({
    description: "`held` is at least 10 000, and more deliveries may wait.",
  }),
  missed: Type.Nullable(
    Type.Integer({
      description:
        "Messages that were sent since and that the endpoint would have got; null if it is not known since when it is disabled.",
    }),
  ),
  missedIsLowerBound: Type.Boolean({
    description:
      "Whether there may be more: only the newest 10 000 messages of the application are looked at.",
  }),
}
const taskId = (description: string) => Type.Nullable(Id("qtask", description))
export const EnablePreviewOut = Type.Named(
  "EndpointEnablePreviewOut",
  Type.Object({ disabled: Type.Boolean(), ...counts }),
)
export const EnableOut = Type.Named(
  "EndpointEnableOut",
  Type.Object(
    {
      ...counts,
      discardTaskId: taskId("The task that discards the waiting deliveries, and then enables the endpoint."),
      replayTaskId: taskId(
        "The task that replays the missed messages. It exists once the endpoint is enabled.",
      ),
      endpoint: EndpointOut,
    },
    { description: "The endpoint as it is now. The other fields are from before the call." },
  ),
)
export type EnablePreviewOut = Static<typeof EnablePreviewOut>
export type EnableOut = Static<typeof EnableOut>
