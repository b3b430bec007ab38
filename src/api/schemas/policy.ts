/** Retry policies on the wire: what `core/policy.ts` takes and gives, and judges in full. */
import { type Static, Timestamp, Type } from "../schema.ts"

/** Checked field by field where policies are parsed, with sentences that say what is wrong. */
export const PolicyIn = Type.Named(
  "PolicyIn",
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        "delays (seconds, or a strategy), then, maxAttempts, maxAge, jitter, retryable, retryAfter, gone, timeout, connectTimeout, retention; see docs/concepts.md.",
    },
  ),
)
export const PolicyOut = Type.Named(
  "PolicyOut",
  Type.Object({}, { additionalProperties: true, description: "The whole policy." }),
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

export const PreviewOut = Type.Named(
  "PreviewOut",
  Type.Object({
    seconds: Type.Array(Type.Number(), {
      description: "After the first attempt, when each of the others is made; jitter left out.",
    }),
    times: Type.Array(Timestamp, { description: "The same, had it begun now." }),
  }),
)

/** The name of a policy, a policy, or null for the default. */
export const Retry = Type.Nullable(Type.Union([Type.String(), PolicyIn]))
export type PolicyIn = Static<typeof PolicyIn>
