/** The return of a disabled endpoint: a preview with counts, and one call that decides about waiting deliveries and missed messages. */
import type { EnableInput, EnablePreview } from "../../resources/endpoints.ts"
import { requireCapability } from "../access.ts"
import { requireCaller } from "../auth.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { omitNullish } from "../query-params.ts"
import { Type } from "../schema.ts"
import { EnableIn, EnableOut, EnablePreviewOut } from "../schemas/endpoint.ts"
import { EndpointId } from "../schemas/fields.ts"
import { endpointOut } from "../views/views.ts"

const tags = ["Endpoint"]
const params = Type.Object(EndpointId)
const PATH = "/app/:app_id/endpoint/:endpoint_id/enable"

export const endpointEnableRoutes: Routes = (app, { tenant }) => {
  app.get(
    PATH,
    operation(
      "v1.endpoint.enable-preview",
      "What enabling the endpoint would send, discard or replay: the preview",
      { auth: "app", tags, params, response: { 200: EnablePreviewOut } },
    ),
    async (request): Promise<EnablePreview> => {
      const { app_id, endpoint_id } = request.params
      return tenant(request).endpoints.enablePreview(app_id, endpoint_id)
    },
  )

  app.post(
    PATH,
    {
      ...operation(
        "v1.endpoint.enable",
        "Enable a disabled endpoint: send or discard its waiting deliveries, and replay messages sent while it was disabled",
        {
          auth: "app",
          capability: "ManageEndpoint",
          description:
            "A discard is a task: the endpoint is enabled when it has ended, and nothing that was to be discarded is sent. A replay is " +
            "a task, which begins when the endpoint is enabled, and needs the capability CreateAttempts, too. An endpoint that is not disabled is a 409. " +
            "A request without a body is as one with `{}`.",
          tags,
          params,
          body: EnableIn,
          response: { 200: EnableOut },
        },
      ),
      preValidation: async (request) => {
        request.body ??= {}
      },
    },
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { held, missed } = request.body
      if (missed === "replay") requireCapability(requireCaller(request), "CreateAttempts")
      const choice = omitNullish<EnableInput>({ held, missed })
      const { endpoint, ...enabled } = await tenant(request).endpoints.enable(app_id, endpoint_id, choice)
      return { ...enabled, endpoint: endpointOut(endpoint) }
    },
  )
}
