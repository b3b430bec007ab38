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
