/** Schemas of sources. */
import { HANDSHAKES } from "../../core/handshake.ts"
import { REFUSAL_REASONS } from "../../core/inbound-results.ts"
import { ALGORITHMS, ENCODINGS, SECRET_ENCODINGS, SIGNATURE_FORMATS } from "../../core/verification.ts"
import { READY_SCHEMES, SCHEME_NAMES } from "../../core/verification-schemes.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import { AppId, EventTypeName, Id } from "./fields.ts"

const HeaderName = Type.String({ minLength: 1, maxLength: 128 })

const Place = Type.Union(
  [
    Type.Object({ header: HeaderName }),
    Type.Object({ pointer: Type.String({ minLength: 1, maxLength: 256, examples: ["/data/id"] }) }),
  ],
  { description: "A header of the request, or a JSON pointer into its body." },
)

const Verification = Type.Named(
  "SourceVerification",
  Type.Object(
    {
      scheme: Type.Enum(SCHEME_NAMES),
      toleranceSeconds: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 86_400,
          description: "The largest difference between a signed time and now; 300 unless set.",
        }),
      ),
      header: Type.Optional({
        ...HeaderName,
        description: "Of hmac and token: where the signature or token is.",
      }),
      prefix: Type.Optional(
        Type.String({
          maxLength: 64,
          description: "Of hmac and token: in front of it. In a list, the name that marks signatures.",
        }),
      ),
      format: Type.Optional(
        Type.Enum(SIGNATURE_FORMATS, {
          description:
            "Of hmac: plain (one signature), pairs (t=TIME,v1=SIGNATURE) or versions (v1,SIGNATURE v1,SIGNATURE).",
        }),
      ),
      algorithm: Type.Optional(Type.Enum(ALGORITHMS, { description: "Of hmac; sha256 unless set." })),
      encoding: Type.Optional(Type.Enum(ENCODINGS, { description: "Of hmac; hex unless set." })),
      content: Type.Optional(
        Type.String({
          maxLength: 256,
          description: "Of hmac: what is signed; {body} unless set. Also {id} and {timestamp}.",
        }),
      ),
      idHeader: Type.Optional(HeaderName),
      timestampHeader: Type.Optional(HeaderName),
      secretEncoding: Type.Optional(
        Type.Enum(SECRET_ENCODINGS, {
          description: "Of hmac: base64 for secrets such as whsec_…; utf8 unless set.",
        }),
      ),
    },
    { examples: [{ scheme: "hmac", header: "x-signature", prefix: "sha256=" }] },
  ),
)

const settings = {
  name: Type.String({
    minLength: 1,
    maxLength: 248,
    pattern: "^[a-zA-Z0-9\\-_.]+$",
    description: "Unique in the application; accepted wherever its id is.",
  }),
  description: Type.Optional(Type.String({ maxLength: 4096 })),
  eventType: Type.Optional(
    Type.Nullable(
      Type.Union([EventTypeName, Place], {
        description: "The event type of its messages, or where it is in each request; null: inbound.NAME.",
      }),
    ),
  ),
  verification: Type.Union([Type.Enum(READY_SCHEMES), Verification], {
    description: "How requests are verified: the name of a scheme, or its fields.",
  }),
  secret: Type.Optional(
    Type.String({ maxLength: 512, description: "What the provider signs with. Never shown again." }),
  ),
  handshake: Type.Optional(
    Type.Nullable(
      Type.Object(
        {
          kind: Type.Enum(HANDSHAKES),
          verifyToken: Type.Optional(
            Type.String({ maxLength: 512, description: "Of meta: the text that was entered there, too." }),
          ),
        },
        {
          description:
            "The provider's question whether somebody reads the URL, which the source answers. Unless set, that of the scheme slack, and none for others; null: none.",
        },
      ),
    ),
  ),
  deduplication: Type.Optional(
    Type.Union([Type.Enum(["scheme", "off"]), Place], {
      description: "Where the provider's id of a delivery is; where the scheme has it unless set.",
    }),
  ),
  rateLimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description: "Requests per second, of each process; 1000 unless set.",
    }),
  ),
  maxBytes: Type.Optional(
    Type.Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 67_108_864,
        description: "The largest body. Null, and at most: the server's limit of payloads.",
      }),
    ),
  ),
  enabled: Type.Optional(
    Type.Boolean({ description: "False: the URL is answered as if it did not exist; true unless set." }),
  ),
}

export const SourceIn = Type.Named(
  "SourceIn",
  Type.Object(settings, {
    examples: [{ name: "github", verification: "github", secret: "It's a Secret to Everybody" }],
  }),
)
export type SourceIn = Static<typeof SourceIn>

export const SourcePatch = Type.Named(
  "SourcePatch",
  Type.Object({
    ...settings,
    name: Type.Optional(settings.name),
    verification: Type.Optional(settings.verification),
  }),
)
export type SourcePatch = Static<typeof SourcePatch>

export const SourceOut = Type.Named(
  "SourceOut",
  Type.Object({
    id: Id("src", "The source's id."),
    appId: Id("app", "The application that gets its messages."),
    url: Type.Optional(
      Type.String({
        description: "What the provider is given. It is secret: only keys with ManageEndpoint see it.",
      }),
    ),
    name: Type.String(),
    description: Type.String(),
    eventType: Type.Nullable(Type.Union([Type.String(), Place])),
    verification: Verification,
    secrets: Type.Object({
      count: Type.Integer({ description: "How many secrets requests may be signed with." }),
      overlapEndsAt: Type.Nullable({
        ...Timestamp,
        description: "When a rotated secret is no longer accepted.",
      }),
    }),
    handshake: Type.Nullable(Type.Object({ kind: Type.Enum(HANDSHAKES) })),
    deduplication: Type.Union([Type.Enum(["scheme", "off"]), Place]),
    rateLimit: Type.Integer(),
    maxBytes: Type.Nullable(Type.Integer()),
    enabled: Type.Boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
)
export type SourceOut = Static<typeof SourceOut>

export const SourceSecretRotateIn = Type.Named(
  "SourceSecretRotateIn",
  Type.Object({
    secret: Type.String({
      minLength: 1,
      maxLength: 512,
      description: "What the provider signs with from now on.",
    }),
    gracePeriodSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_592_000,
        description: "How long the old secret is accepted, too; a day unless set.",
      }),
    ),
  }),
)

const Reason = Type.Enum(REFUSAL_REASONS, {
  description:
    "unknown (the source is disabled), rate, size, timeout (of the body), handshake, signature, or unavailable (a 503)",
})
const Count = Type.Integer({ minimum: 0 })

export const SourceActivityOut = Type.Named(
  "SourceActivityOut",
  Type.Object({
    accepted: Count,
    duplicates: Type.Integer({
      minimum: 0,
      description: "Repetitions of a delivery that was accepted before.",
    }),
    handshakes: Count,
    refused: Type.Record(Count, { description: "By reason; those that did not happen are left out." }),
    lastAcceptedAt: Type.Nullable(Timestamp),
    lastRefusedAt: Type.Nullable(Timestamp),
    recent: Type.Array(
      Type.Object({
        at: Timestamp,
        reason: Reason,
        detail: Type.Nullable(
          Type.String({
            description:
              "Of signature: missing, timestamp or mismatch. Of unavailable: overloaded, closing, timeout (of the store), or null for its failure. The provider is not told.",
          }),
        ),
        method: Type.String(),
        path: Type.String({ description: "Behind the source's URL." }),
        remoteAddress: Type.Nullable(Type.String()),
        userAgent: Type.Nullable(Type.String()),
      }),
      { description: "The newest 20 requests that were refused, newest first." },
    ),
  }),
)
export type SourceActivityOut = Static<typeof SourceActivityOut>

export const SourceId = {
  ...AppId,
  source_id: Type.String({ minLength: 1, maxLength: 256, description: "The source's id or name." }),
}
