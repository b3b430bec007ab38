/** Schemas of retry policies, for the OpenAPI document. */
import { DAY, DEAD_REASONS, type PolicyInput } from "../../core/policy.ts"
import { PROTECTION_FIELDS, type ProtectionPreview } from "../../core/protection-preview.ts"
import { type Static, Timestamp, type TSchema, Type } from "../schema.ts"

const Seconds = (description: string) => Type.Number({ minimum: 0, description })
const Strategy = Type.Enum(["exponential", "linear", "fixed"])

const RetentionRule = Type.Union(
  [
    Type.Enum(["never"]),
    Type.Object({
      after: Seconds("How long it is kept."),
      from: Type.Optional(Type.Enum(["delivered_at", "last_attempted_at", "received_at"])),
    }),
  ],
  { description: "`never` keeps it for ever." },
)

/** The fields of a policy in responses; the names in snake case are only accepted. */
const SHOWN_FIELDS = {
  delays: Type.Union(
    [
      Type.Array(Type.Number({ minimum: 0 })),
      Type.Object({
        strategy: Strategy,
        base: Type.Number({ minimum: 0 }),
        factor: Type.Optional(Type.Number({ minimum: 1, description: "Of `exponential`; 2 unless set." })),
        cap: Type.Optional(Seconds("The longest delay, jitter included; a day unless set.")),
      }),
    ],
    { description: "Seconds after the n-th failure: a list, or a formula.", examples: [[5, 300, 1800]] },
  ),
  then: Type.Optional(Seconds("The delay after the end of a list; its last unless set.")),
  maxAttempts: Type.Optional(
    Type.Integer({ minimum: 1, description: "The most attempts, the first one counted." }),
  ),
  maxAge: Type.Optional(
    Seconds("The oldest that a delivery may get. At least one of maxAttempts and maxAge is set."),
  ),
  jitter: Type.Optional(
    Type.Union([Type.Enum(["none", "full"]), Type.Array(Type.Number(), { minItems: 2, maxItems: 2 })], {
      description: "`none`, `full` (between 0 and the delay), or a factor `[min, max]`.",
    }),
  ),
  retryable: Type.Optional(
    Type.Enum(["non-2xx", "transient", "5xx"], {
      description:
        "Which failures are retried; `non-2xx` unless set, or `5xx` in a policy with max_retries, base_delay, max_delay or strategy.",
    }),
  ),
  retryAfter: Type.Optional(
    Type.Union([Type.Boolean(), Type.Number({ minimum: 0 })], {
      description: "Whether `Retry-After` is honoured (`true`: up to a day), or the longest wait in seconds.",
    }),
  ),
  gone: Type.Optional(
    Type.Boolean({ description: "Whether 410 ends the delivery and disables the endpoint." }),
  ),
  timeout: Type.Optional(Seconds("The deadline of a whole attempt; 30 unless set.")),
  connectTimeout: Type.Optional(Seconds("The deadline for the connection; 10 unless set.")),
  ordered: Type.Optional(
    Type.Boolean({ description: "Whether an endpoint created with this policy is ordered unless it says." }),
  ),
  retention: Type.Optional(
    Type.Object(
      Object.fromEntries(
        ["delivered", "dead", ...DEAD_REASONS].map((outcome) => [outcome, Type.Optional(RetentionRule)]),
      ),
      {
        description: "How long finished deliveries are kept, by outcome.",
        examples: [{ delivered: { after: 2_592_000, from: "delivered_at" }, dead: "never" }],
      },
    ),
  ),
  breaker: Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        Type.Enum(["report"]),
        Type.Object({
          report: Type.Optional(Type.Boolean({ description: "Only tells when the breaker would open." })),
          failures: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1000,
              description: "Opens after this many failures in a row; 5.",
            }),
          ),
          ratio: Type.Optional(
            Type.Number({
              minimum: 0.01,
              maximum: 1,
              description: "Or when this part of `attempts` failed; 0.5.",
            }),
          ),
          attempts: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 100_000,
              description: "The least attempts for `ratio`; 20.",
            }),
          ),
          window: Type.Optional(
            Type.Number({
              minimum: 1,
              maximum: 3600,
              description: "Seconds within which `attempts` count; 60.",
            }),
          ),
          open: Type.Optional(
            Type.Number({
              minimum: 1,
              maximum: DAY,
              description:
                "Seconds that it is open the first time, doubled each time, and at most `maxAge`; 30.",
            }),
          ),
          maxOpen: Type.Optional(
            Type.Number({
              minimum: 1,
              maximum: DAY,
              description: "The most seconds that it is open; at least `open`, at most `maxAge`; 600.",
            }),
          ),
          ramp: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 10_000,
              description: "Requests a second after an outage; 10.",
            }),
          ),
        }),
      ],
      { description: "The circuit breaker. On unless set, except in a policy in snake case." },
    ),
  ),
  budget: Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        Type.Object({
          tokens: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 100_000, description: "The size of the bucket; 100." }),
          ),
          retry: Type.Optional(
            Type.Number({
              minimum: 0.01,
              maximum: 100_000,
              description: "What a retry that fails costs; at most `tokens`; 5.",
            }),
          ),
          timeout: Type.Optional(
            Type.Number({
              minimum: 0.01,
              maximum: 100_000,
              description: "What a retry that times out costs; at least `retry`, at most `tokens`; 10.",
            }),
          ),
          success: Type.Optional(
            Type.Number({
              minimum: 0,
              maximum: 100_000,
              description: "What a success gives back; at most `tokens`; 1.",
            }),
          ),
          perMinute: Type.Optional(
            Type.Number({ minimum: 0.1, maximum: 100_000, description: "What a minute gives back; 5." }),
          ),
        }),
      ],
      { description: "The retry budget: while it is spent, retries wait. On unless set, as `breaker`." },
    ),
  ),
  adaptive: Type.Optional(
    Type.Union([Type.Boolean(), Type.Object({}, { additionalProperties: { type: "number", minimum: 0 } })], {
      description:
        "The least delay by failure cause or HTTP status (300 to 599). An object replaces the default causes. Off unless set.",
      examples: [{ timeout: 60, tls_error: 600, "404": 600 }],
    }),
  ),
  autoDisable: Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        Type.Object({
          after: Type.Optional(
            Type.Number({
              minimum: DAY / 2,
              maximum: 365 * DAY,
              description: "Seconds without a success; 432000, 5 days.",
            }),
          ),
          failures: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 100_000, description: "And after this many failures; 20." }),
          ),
        }),
      ],
      { description: "Whether an endpoint that fails for days is disabled. On unless set, as `breaker`." },
    ),
  ),
} satisfies { readonly [field in keyof PolicyInput]: TSchema }

const READ_FIELDS = {
  ...SHOWN_FIELDS,
  delays: Type.Optional(SHOWN_FIELDS.delays),
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, description: "Stands for maxAttempts." })),
  backoff_schedule: Type.Optional(
    Type.Array(Type.Number({ minimum: 0 }), { description: "Stands for delays." }),
  ),
  connect_timeout: Type.Optional(Seconds("Stands for connectTimeout.")),
  max_retries: Type.Optional(Type.Integer({ minimum: 0, description: "Stands for maxAttempts − 1." })),
  base_delay: Type.Optional(Seconds("The base of an exponential delay; stands for delays.base.")),
  max_delay: Type.Optional(Seconds("Stands for delays.cap.")),
  strategy: Type.Optional(Strategy),
} satisfies { readonly [field in keyof Required<PolicyInput>]: TSchema }

const Anything = Type.Object({}, { additionalProperties: true })

/** The library validates the fields of a policy, with its own messages. */
export const PolicyIn = Type.Named(
  "PolicyIn",
  Type.Shown(
    Anything,
    Type.Object(READ_FIELDS, {
      description: "A retry policy; times in seconds.",
      examples: [{ delays: [5, 300, 1800], maxAttempts: 4 }],
    }),
  ),
)
export const PolicyOut = Type.Named(
  "PolicyOut",
  Type.Shown(Anything, Type.Object(SHOWN_FIELDS, { description: "The whole policy." })),
)

export const NamedPolicyOut = Type.Named(
  "NamedPolicyOut",
  Type.Object({
    name: Type.String(),
    preset: Type.Boolean({ description: "One of the five that Posthorn brings; they cannot be changed." }),
    policy: PolicyOut,
  }),
)

export const PreviewIn = Type.Named(
  "PreviewIn",
  Type.Object({
    policy: Type.Union([Type.String({ description: "The name of a policy." }), PolicyIn]),
    attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  }),
)

const protectionField = (field: keyof ProtectionPreview) =>
  Type.Object({
    settings: SHOWN_FIELDS[field],
    text: Type.String({ description: "The same in words." }),
  })

export const PreviewOut = Type.Named(
  "PreviewOut",
  Type.Object({
    seconds: Type.Array(Type.Number(), {
      description: "When each attempt is made, in seconds after the first, which is at 0; jitter left out.",
    }),
    times: Type.Array(Timestamp, { description: "The same, had it begun now." }),
    protection: Type.Object(
      Object.fromEntries(PROTECTION_FIELDS.map((field) => [field, protectionField(field)])) as {
        [F in keyof ProtectionPreview]: ReturnType<typeof protectionField>
      },
      { description: "What protects an endpoint that fails, field by field of the policy." },
    ),
  }),
)

/** The name of a policy, a policy, or null for the default. */
export const Retry = Type.Nullable(Type.Union([Type.String(), PolicyIn]))
export type PolicyIn = Static<typeof PolicyIn>
