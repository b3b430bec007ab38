/** Schemas of a tenant's usage. */
import { Timestamp, Type } from "../schema.ts"
import { TaskStartedOut } from "./delivery.ts"
import { AppId } from "./fields.ts"

export const AppUsageStatsIn = Type.Named(
  "AppUsageStatsIn",
  Type.Object({
    since: Timestamp,
    until: Timestamp,
    appIds: Type.Optional(
      Type.Nullable(
        Type.Array(AppId.app_id, {
          minItems: 1,
          maxItems: 1000,
          uniqueItems: true,
          description: "By id or uid; all that sent anything unless told.",
        }),
      ),
    ),
  }),
)

export const AppUsageStatsOut = Type.Named(
  "AppUsageStatsOut",
  Type.Object({
    ...TaskStartedOut.properties,
    unresolvedAppIds: Type.Array(Type.String(), { description: "Those that are nobody's." }),
  }),
)

export const EndpointCountOut = Type.Named(
  "EndpointCountOut",
  Type.Object({ active: Type.Integer(), disabled: Type.Integer() }),
)

export const ActiveAppCount = Type.Named("ActiveAppCount", Type.Object({ count: Type.Integer() }))
