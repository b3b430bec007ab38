/** Event types from an OpenAPI document: `/event-type/import/openapi`. */
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { eventTypesOf, readSpec } from "../openapi-import/event-types.ts"
import { operation } from "../operation.ts"
import {
  type EventTypeFromOpenApi,
  EventTypeImportOpenApiIn,
  EventTypeImportOpenApiOut,
} from "../schemas/event-type-import.ts"

export const eventTypeImportRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/event-type/import/openapi",
    operation(
      "v1.event-type.import-openapi",
      "Create and replace event types from the webhooks of an OpenAPI document",
      {
        auth: "org",
        description:
          "Each entry of webhooks (or x-webhooks) is one event type, by its name: the description, deprecated, " +
          "x-svix-feature-flags and x-svix-group-name of its operation, and the schema and examples of its JSON body. " +
          "What was archived and is in the document comes back.",
        tags: ["Event Type"],
        body: EventTypeImportOpenApiIn,
        response: { 200: EventTypeImportOpenApiOut },
      },
    ),
    async (request) => {
      const { eventTypes } = tenant(request)
      const { spec, specRaw, dryRun = false, replaceAll = false } = request.body
      if ((spec == null) === (specRaw == null))
        throw ApiError.of(400, "generic_error", "give the document either as spec or as specRaw")
      const at = spec == null ? "specRaw" : "spec"
      const types = eventTypesOf(spec ?? (await readSpec(specRaw!)), at)
      const where = ({ name }: { readonly name: string }) => `${at}.webhooks.${name}`
      const kept = new Set(types.map(({ name }) => name))
      const there = replaceAll ? await Array.fromAsync(eventTypes.list({ limit: 250 })) : []
      const others = there.map(({ name }) => name).filter((name) => !kept.has(name))
      if (dryRun) {
        request.change = null
        const to_modify = (await eventTypes.changes(types, where)).map(
          ({ archived: _archived, ...type }) => type as EventTypeFromOpenApi,
        )
        return { data: { modified: [], archived: [], to_modify, to_archive: others } }
      }
      const modified = await eventTypes.putAll(types, where)
      for (const name of others) await eventTypes.delete(name)
      return { data: { modified, archived: others } }
    },
  )
}
