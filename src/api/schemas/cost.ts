/** Schemas of cost reports. */

import { type Static, Timestamp, Type } from "../schema.ts"
import { HealthState } from "./endpoint-health.ts"

const Amount = (description: string) => Type.Nullable(Type.Number({ description }))
const Count = (description: string) => Type.Integer({ description })

const EXPENSE = {
  attempts: Type.Integer(),
  bytesOut: Count("Bytes of the payloads that were sent."),
  bytesIn: Count("Bytes of the responses' bodies, as far as they were kept."),
  slotSeconds: Type.Number({ description: "How long attempts occupied a slot, from start to outcome." }),
  price: Amount("In the report's currency; null without prices."),
}
const CostExpense = Type.Named("CostExpense", Type.Object(EXPENSE))

const COST = {
  ...EXPENSE,
  delivered: Count("Deliveries that were delivered."),
  dead: Count("Deliveries that were given up; without cancelled and expunged ones."),
  retries: Count("Attempts after the first."),
  attemptsPerDelivered: Amount("Amplification; null while nothing was delivered."),
  wastedShare: Amount("The share of attempts that delivered nothing, from 0 to 1."),
  retrySuccessRate: Amount("The share of retries that delivered, from 0 to 1; null without retries."),
}
const Cost = Type.Named("Cost", Type.Object(COST))

const AttemptYield = Type.Named(
  "AttemptYield",
  Type.Object({
    number: Count("1 is the first attempt; 20 stands for the 20th and all later ones."),
    attempts: Type.Integer(),
    delivered: Type.Integer(),
    successRate: Type.Number(),
    costShare: Type.Number({ description: "Of the price of all attempts; without prices, of their number." }),
    deliveredShare: Amount("Of everything that was delivered."),
  }),
)

const CostGroup = Type.Named(
  "CostGroup",
  Type.Object({
    key: Type.Nullable(
      Type.String({
        description:
          "The id of the endpoint or application, the event type, or the policy that endpoints have now.",
      }),
    ),
    name: Type.Nullable(
      Type.String({ description: "The uid of the endpoint or application, else its URL or name." }),
    ),
    health: Type.Nullable(HealthState),
    why: Type.Nullable(Type.String({ description: "Why the endpoint is in that state; for people." })),
    ...COST,
  }),
)

const WhatIf = Type.Named(
  "CostWhatIf",
  Type.Object(
    {
      maxAttempts: Type.Nullable(Type.Integer()),
      maxAge: Type.Nullable(Type.Number()),
      saved: Type.Object({ atLeast: CostExpense, atMost: CostExpense }),
      savedShare: Type.Object({ atLeast: Type.Number(), atMost: Type.Number() }),
      lost: Type.Object({ atLeast: Type.Integer(), atMost: Type.Integer() }),
      delivered: Count("How many were delivered, of which some would be lost."),
      text: Type.String({ description: "A sentence for people; its words may change." }),
    },
    { description: "The bounds differ only for an age that lies within the attempts of one hourly sum." },
  ),
)

export const CostReportOut = Type.Named(
  "CostReportOut",
  Type.Object({
    since: Timestamp,
    until: Timestamp,
    currency: Type.Nullable(Type.String({ description: "Null without prices." })),
    total: Cost,
    byAttempt: Type.Array(AttemptYield),
    groups: Type.Nullable(Type.Array(CostGroup, { description: "The most expensive first." })),
    groupsLeftOut: Count("Groups beyond the limit."),
    whatIf: Type.Nullable(WhatIf),
  }),
)
export type CostReportOut = Static<typeof CostReportOut>
