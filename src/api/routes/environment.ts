/** Export and import of a tenant's event types and policies: `/environment`. */
import type { PolicyInput } from "../../core/policy.ts"
import { writePolicy } from "../../core/write-policy.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { eventTypeInput } from "../event-type-input.ts"
import { operation } from "../operation.ts"
import { NoContent } from "../schema.ts"
import { EnvironmentIn, EnvironmentOut } from "../schemas/environment.ts"
import { eventTypeOut } from "../views/views.ts"

const tags = ["Environment"]

export const environmentRoutes: Routes = (app, { tenant, posthorn }) => {
  app.post(
    "/environment/export",
    operation(
      "v1.environment.export",
      "Every event type, also the archived ones, and every retry policy of yours",
      {
        auth: "org",
        isRecorded: false,
        description: "Applications, endpoints, keys and secrets are not part of it.",
        tags,
        response: { 200: EnvironmentOut },
      },
    ),
    async (request) => {
      const { eventTypes, policies } = tenant(request)
      const types = await Array.fromAsync(eventTypes.list({ limit: 250, includeArchived: true }))
      const own = (await policies.list()).filter(({ preset }) => !preset)
      return {
        version: 1 as const,
        createdAt: new Date(posthorn.context.clock.now()),
        eventTypes: types.map((type) => eventTypeOut(type, true)),
        settings: {
          policies: Object.fromEntries(own.map(({ name, policy }) => [name, writePolicy(policy)])),
        },
        connectors: [],
      }
    },
  )

  app.post(
    "/environment/import",
    operation("v1.environment.import", "Create and replace what an export has in it; nothing is deleted", {
      auth: "org",
      description: "Nothing is written unless all of it is fit to be.",
      tags,
      body: EnvironmentIn,
      response: { 204: NoContent },
    }),
    async (request, reply) => {
      const { eventTypes, policies } = tenant(request)
      const { connectors, settings } = request.body
      if (connectors?.length)
        throw ApiError.invalidAt(["body", "connectors"], "are not part of Posthorn; leave them out")
      const types = (request.body.eventTypes ?? []).map(({ createdAt: _from, updatedAt: _to, ...type }) =>
        eventTypeInput(type),
      )
      await eventTypes.changes(types)
      await policies.putAll(
        (settings?.policies ?? {}) as { [name: string]: PolicyInput },
        "settings.policies",
      )
      await eventTypes.putAll(types)
      return reply.code(204).send()
    },
  )
}
