/** The search by id, uid or exact name: `/search`. */
import { hasCode, notFound } from "../../core/errors.ts"
import { isId } from "../../core/ids.ts"
import { DEFAULT_ORG } from "../../core/org.ts"
import type { Posthorn } from "../../posthorn.ts"
import { FOUND_KINDS, type Found, MOST_FOUND } from "../../resources/search.ts"
import type { Tenant } from "../../tenant.ts"
import { requireCaller } from "../auth.ts"
import type { Caller } from "../caller.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { Type } from "../schema.ts"
import { HttpErrorOut } from "../schemas/common.ts"

const FoundOut = Type.Named(
  "FoundOut",
  Type.Object({
    kind: Type.Enum(FOUND_KINDS),
    id: Type.String({ description: "Of an event type, a policy and an agent: its name." }),
    appId: Type.Nullable(Type.String({ description: "Null for what belongs to the whole organization." })),
    label: Type.String({ description: "For people; its form may change." }),
  }),
)

export const searchRoutes: Routes = (app, { posthorn, tenant }) => {
  app.get(
    "/search",
    operation("v1.search.find", "Find what has exactly this id, uid or name", {
      auth: "read",
      capability: "ViewBase",
      description:
        "Applications by id, uid or name; endpoints by id or uid; messages by id or event id; deliveries, sources, tasks and alerts by id; event types and policies by name. " +
        "With `app_id`, and for keys of one application, only things of that application, its sources and agents also by name. Without it, an event id is searched in the 1000 newest applications.",
      tags: ["Search"],
      querystring: Type.Object({
        q: Type.String({ minLength: 1, maxLength: 256, description: "Spaces around it do not count." }),
        app_id: Type.Optional(
          Type.String({ minLength: 1, maxLength: 256, description: "The application's id or uid." }),
        ),
      }),
      response: {
        200: Type.Named("FoundList", Type.Object({ data: Type.Array(FoundOut, { maxItems: MOST_FOUND }) })),
        404: HttpErrorOut,
      },
    }),
    async (request) => {
      const { q, app_id: app } = request.query
      const caller = requireCaller(request)
      const data = await find(posthorn, tenant(request), caller, q.trim(), app)
      return { data: data.map((one) => ({ ...one })) }
    },
  )
}

async function find(
  posthorn: Posthorn,
  tenant: Tenant,
  caller: Caller,
  text: string,
  app: string | undefined,
): Promise<Found[]> {
  if (caller.appId !== null) {
    if (app !== undefined && (await tenant.applications.get(app)).id !== caller.appId)
      throw notFound("application", app)
    // Deliveries have no page for keys of an application; their messages and attempts do.
    return (await tenant.search.inApplication(caller.appId, text)).filter(({ kind }) => kind !== "delivery")
  }
  if (app !== undefined) return tenant.search.inApplication(app, text)
  // Alerts belong to the deployment.
  if (caller.orgId === DEFAULT_ORG && isId("alert", text)) return findAlert(posthorn, text)
  return tenant.search.everywhere(text)
}

async function findAlert({ alerts }: Posthorn, id: string): Promise<Found[]> {
  try {
    const { name } = await alerts.get(id)
    return [{ kind: "alert", id, appId: null, label: name }]
  } catch (error) {
    if (hasCode(error, "not_found")) return []
    throw error
  }
}
