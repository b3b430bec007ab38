/** Schemas of agents. */
import { type Static, Timestamp, Type } from "../schema.ts"

export const AgentOut = Type.Named(
  "AgentOut",
  Type.Object({
    name: Type.String({ description: "The NAME of relay://NAME." }),
    appId: Type.String(),
    connected: Type.Boolean(),
    version: Type.Nullable(Type.String({ description: "The agent's own words, at its newest connection." })),
    connectedSince: Type.Nullable(Timestamp),
    lastSeenAt: Type.Nullable({
      ...Timestamp,
      description: "Now, if it is connected. Null: it was never connected.",
    }),
    inFlight: Type.Integer({
      description:
        "Events that were sent to it and not acknowledged; up to 15 s old if it is connected to another server.",
    }),
    endpoints: Type.Array(Type.String(), {
      description: "The ids of the application's endpoints with the URL relay://NAME.",
    }),
  }),
)
export type AgentOut = Static<typeof AgentOut>
