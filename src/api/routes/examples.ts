/** Sends the example of an event type to one endpoint. */
import { invalid } from "../../core/errors.ts"
import type { EventType } from "../../resources/event-types.ts"
import type { Routes } from "../context.ts"
import { ApiError } from "../errors.ts"
import { operation } from "../operation.ts"
import { rawField } from "../raw-field.ts"
import { Type } from "../schema.ts"
import { EndpointId, EventTypeName } from "../schemas/fields.ts"
import { MessageOut } from "../schemas/message.ts"
import { traceOf } from "../send-message.ts"
import { messageOut } from "../views/views.ts"

const PING = "svix.ping"
const EventExampleIn = Type.Named(
  "EventExampleIn",
  Type.Object({
    eventType: EventTypeName,
    exampleIndex: Type.Optional(
      Type.Integer({ minimum: 0, description: "Which of the schema's examples; the first unless told." }),
    ),
    payload: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: "Sent instead of the schema's example." }),
    ),
  }),
)

export const exampleRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/app/:app_id/endpoint/:endpoint_id/send-example",
    operation(
      "v1.endpoint.send-example",
      "Send an event type's example to this endpoint alone; svix.ping needs no event type",
      {
        auth: "org",
        tags: ["Endpoint"],
        params: Type.Object(EndpointId),
        body: EventExampleIn,
        response: { 200: MessageOut },
      },
    ),
    async (request) => {
      const { app_id, endpoint_id } = request.params
      const { eventType, exampleIndex, payload } = request.body
      const { messages, eventTypes } = tenant(request)
      if (payload !== undefined && exampleIndex !== undefined)
        throw invalid("exampleIndex", "and payload both say what is sent; give one of them")
      const example = async () =>
        eventType === PING ? { success: true } : exampleOf(await eventTypes.get(eventType), exampleIndex ?? 0)
      const sent =
        payload === undefined
          ? { payload: await example() }
          : { payload: rawField(request.rawBody!, "payload"), contentType: "application/json" }
      const { id } = await messages.sendTo(app_id, endpoint_id, { eventType, ...sent }, traceOf(request))
      return messageOut(await messages.get(app_id, id), { content: true })
    },
  )
}

function exampleOf({ name, schemas }: EventType, index: number): unknown {
  const schema = (schemas?.["1"] ?? Object.values(schemas ?? {})[0]) as
    | { readonly examples?: readonly unknown[]; readonly example?: unknown }
    | undefined
  const examples = Array.isArray(schema?.examples)
    ? schema.examples
    : [schema?.example].filter((one) => one !== undefined)
  if (examples.length === 0)
    throw ApiError.of(400, "invalid_scheme", `the schema of event type "${name}" has no example`)
  if (index >= examples.length) throw invalid("exampleIndex", `must be below ${examples.length}`)
  return examples[index]
}
