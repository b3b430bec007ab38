/** Schemas of the health of endpoints. */
import { HEALTH_STATES } from "../../core/health.ts"
import { type Static, Timestamp, Type } from "../schema.ts"

export const HealthState = Type.Named(
  "EndpointHealthState",
  Type.Enum(HEALTH_STATES, {
    description:
      "`degraded`: under 95 % of the attempts of the last hour succeeded. `failing`: five failures in a row, or a failed retry and no " +
      "success since the failure before it. `open`: the circuit breaker is open or half-open. `offline`: " +
      "the endpoint's agent is not connected.",
  }),
)
export type HealthState = Static<typeof HealthState>

const AttemptWindow = Type.Named(
  "AttemptWindow",
  Type.Object({
    attempts: Type.Integer(),
    successRate: Type.Nullable(Type.Number({ description: "Between 0 and 1; null without attempts." })),
    p95Ms: Type.Nullable(Type.Integer({ description: "95 % of the attempts took no longer." })),
  }),
)

const timeOrNull = (description: string) => Type.Nullable({ ...Timestamp, description })

const ms = (description: string) => Type.Nullable(Type.Integer({ description }))

export const EndpointSeriesOut = Type.Named(
  "EndpointSeriesOut",
  Type.Object({
    hours: Type.Array(
      Type.Named(
        "EndpointHour",
        Type.Object({
          hour: Timestamp,
          attempts: Type.Integer(),
          succeeded: Type.Integer(),
          retries: Type.Integer({ description: "Attempts after the first of their delivery." }),
          dead: Type.Integer({ description: "Deliveries that were given up." }),
          noResponse: Type.Integer({ description: "Attempts without an HTTP status." }),
          p50Ms: ms("The median duration, estimated from a histogram; null without attempts."),
          p95Ms: ms("95 % of the attempts took no longer."),
        }),
      ),
      {
        description:
          "Every hour of the span, the oldest first. An attempt belongs to the hour in which it ended.",
      },
    ),
    statusCodes: Type.Array(
      Type.Named(
        "StatusCodeCount",
        Type.Object({ status: Type.Integer({ description: "0: no answer." }), count: Type.Integer() }),
      ),
      { description: "Of the newest attempts, the most frequent first." },
    ),
    sampled: Type.Integer({
      description:
        "The number of attempts in `statusCodes`: those of the newest 1000 that began in the span.",
    }),
  }),
)

export const EndpointHealthOut = Type.Named(
  "EndpointHealthOut",
  Type.Object({
    endpointId: Type.String(),
    endpointUid: Type.Nullable(Type.String()),
    endpointUrl: Type.String(),
    appId: Type.String(),
    health: HealthState,
    since: timeOrNull("Since when; null when it was not recorded, as for `healthy`."),
    why: Type.String({ description: "A sentence for people; its words may change." }),
    lastHour: AttemptWindow,
    lastDay: AttemptWindow,
    failures: Type.Integer({ description: "Attempts in a row without a success." }),
    lastSuccessAt: timeOrNull("Null: none in 90 days."),
    oldestWaitingAt: timeOrNull("Since when the oldest delivery waits that is not scheduled for later."),
  }),
)
export type EndpointHealthOut = Static<typeof EndpointHealthOut>
