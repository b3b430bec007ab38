/** Schemas of the overview of the whole store. */
import { HEALTH_STATES } from "../../core/health.ts"
import { type Static, Timestamp, Type } from "../schema.ts"
import { HealthState } from "./endpoint-health.ts"

const counts = Object.fromEntries(HEALTH_STATES.map((state) => [state, Type.Integer()]))

const OverviewEndpoint = Type.Named(
  "OverviewEndpoint",
  Type.Object({
    endpointId: Type.String(),
    orgId: Type.String(),
    appId: Type.String(),
    appName: Type.String(),
    url: Type.String(),
    health: HealthState,
    why: Type.String({ description: "A sentence for people; its words may change." }),
    since: Type.Nullable({ ...Timestamp, description: "Null when it was not recorded." }),
    waiting: Type.Integer({ description: "Deliveries that wait for it, for any reason." }),
  }),
)

export const OverviewOut = Type.Named(
  "OverviewOut",
  Type.Object({
    at: Timestamp,
    surveyedAt: Type.Nullable({
      ...Timestamp,
      description:
        "When the store was read for everything below: every 15 seconds, a large store every minute. Null: never yet, and nothing below is known. Older than two minutes: no process that delivers is running.",
    }),
    deliveries: Type.Object({
      due: Type.Integer({ description: "May start now, or are being sent." }),
      scheduled: Type.Integer({ description: "Wait for a later first attempt that the sender asked for." }),
      retrying: Type.Integer({ description: "Wait for their next attempt." }),
      held: Type.Integer({
        description:
          "Wait for their endpoint: paused, disabled, held, its breaker open, or without its agent.",
      }),
    }),
    oldestDue: Type.Nullable(
      Type.Object({
        at: { ...Timestamp, description: "Since when it has been due." },
        endpointId: Type.String(),
        appId: Type.Nullable(Type.String()),
      }),
    ),
    endpoints: Type.Object(counts, { description: "Endpoints by health." }),
    troubled: Type.Array(OverviewEndpoint, {
      description: "Endpoints that are not healthy, the most urgent first; at most 50.",
    }),
    deadLetters: Type.Array(
      Type.Object({
        reason: Type.String(),
        count: Type.Integer(),
        oldestAt: { ...Timestamp, description: "When the oldest of them died." },
      }),
      { description: "Dead letters that nobody discarded or called off, by reason." },
    ),
    hours: Type.Array(
      Type.Object({
        hour: { ...Timestamp, description: "When the hour began." },
        attempts: Type.Integer(),
        succeeded: Type.Integer(),
        dead: Type.Integer({ description: "Deliveries that were given up." }),
        retries: Type.Integer({ description: "Attempts after the first." }),
      }),
      { description: "The last 24 hours, this one included, the oldest first." },
    ),
    attempts: Type.Array(
      Type.Object({
        number: Type.Integer({ description: "20 stands for the 20th attempt and all later ones." }),
        attempts: Type.Integer(),
        succeeded: Type.Integer(),
      }),
      { description: "The attempts of these hours by their number." },
    ),
  }),
)
export type OverviewOut = Static<typeof OverviewOut>
