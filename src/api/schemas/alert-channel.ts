/** Schemas of notification channels. The library checks which fields a kind takes. */
import { MAIL_SECURITIES } from "../../alerts/channels/channel.ts"
import { ALERT_CHANNEL_KINDS } from "../../core/alert-channel-kinds.ts"
import { type Static, Timestamp, Type } from "../schema.ts"

const Kind = Type.Enum(ALERT_CHANNEL_KINDS)

export const AlertChannelIn = Type.Named(
  "AlertChannelIn",
  Type.Object(
    {
      kind: Kind,
      deadLetters: Type.Optional(
        Type.Boolean({
          description: "Whether it gets notices about dead letters; true unless set, false for pagerduty.",
        }),
      ),
      url: Type.Optional(
        Type.String({
          maxLength: 4096,
          description:
            "Of webhook and slack; of pagerduty, for accounts in the EU. Slack's is never shown again.",
        }),
      ),
      routingKey: Type.Optional(
        Type.String({
          maxLength: 256,
          description: "Of pagerduty: the key of an Events API v2 integration. Never shown again.",
        }),
      ),
      source: Type.Optional(
        Type.String({
          maxLength: 255,
          description: "Of pagerduty: names this deployment; posthorn unless set.",
        }),
      ),
      host: Type.Optional(Type.String({ maxLength: 255, description: "Of mail: the SMTP server." })),
      port: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 65_535,
          description: "Of mail: 587, 465 with tls, 25 with none unless set.",
        }),
      ),
      security: Type.Optional(
        Type.Enum(MAIL_SECURITIES, {
          description: "Of mail: tls on port 465, else starttls, which is required.",
        }),
      ),
      user: Type.Optional(Type.String({ maxLength: 255 })),
      password: Type.Optional(Type.String({ maxLength: 1024, description: "Never shown again." })),
      ca: Type.Optional(
        Type.String({
          maxLength: 65_536,
          description: "Of mail: certificate authorities as PEM, instead of the public ones.",
        }),
      ),
      from: Type.Optional(Type.String({ maxLength: 254, description: "Of mail: the sender's address." })),
      to: Type.Optional(Type.Array(Type.String({ maxLength: 254 }), { maxItems: 50 })),
    },
    { examples: [{ kind: "webhook", url: "https://ops.example.com/posthorn" }] },
  ),
)

export const AlertChannelOut = Type.Named(
  "AlertChannelOut",
  Type.Object({
    name: Type.String(),
    kind: Type.Nullable(Kind),
    deadLetters: Type.Boolean(),
    target: Type.String({ description: "Where notifications go, without secrets." }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
)
export type AlertChannelOut = Static<typeof AlertChannelOut>

export const AlertChannelTestOut = Type.Named(
  "AlertChannelTestOut",
  Type.Object({
    delivered: Type.Boolean(),
    detail: Type.String({ description: "What became of it, and if it was not delivered, what to do." }),
  }),
)
export type AlertChannelTestOut = Static<typeof AlertChannelTestOut>
