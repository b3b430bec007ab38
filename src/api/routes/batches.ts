/** Batches of messages: `/app/{app_id}/msg/batch`. */
import { PosthornError } from "../../core/errors.ts"
import type { MessageInput } from "../../resources/messages.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { rawField, rawItems } from "../raw-field.ts"
import { Type } from "../schema.ts"
import { AppId } from "../schemas/fields.ts"
import { BatchIn, BatchOut } from "../schemas/message.ts"
import {
  acceptedOut,
  idempotencyKeyOf,
  messageInput,
  payloadOf,
  SEND_ACCESS,
  traceOf,
} from "../send-message.ts"
import { ensureApplication } from "./applications.ts"
import { withContent } from "./messages.ts"

export const batchRoutes: Routes = (app, { tenant }) => {
  app.post(
    "/app/:app_id/msg/batch",
    operation("v1.message.create-batch", "Send up to 1000 messages, all or none, in their order", {
      ...SEND_ACCESS,
      tags: ["Message"],
      params: Type.Object(AppId),
      querystring: Type.Object(withContent),
      body: BatchIn,
      response: { 202: BatchOut },
    }),
    async (request, reply) => {
      const { messages, applications } = tenant(request)
      const { app_id } = request.params
      const { body } = request
      const raw = rawItems(rawField(request.rawBody!, "messages")!)
      const payloads = body.messages.map((message, i) => payloadOf(message, raw[i]!))
      const inputs = body.messages.map((message, i) =>
        within(`messages[${i}]`, () => messageInput(message, payloads[i]!, undefined)),
      )
      await ensureApplication(applications, app_id, body.application)
      const idempotencyKey = idempotencyKeyOf(request)
      const sent = await messages.sendBatch(app_id, inputs, {
        ...traceOf(request),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
      const withPayload = request.query.with_content !== false
      const data = sent.map((one, i) => acceptedOut(one, inputs[i]!, withPayload ? payloads[i]! : null))
      return reply.code(202).send({ data })
    },
  )
}

function within(at: string, make: () => MessageInput): MessageInput {
  try {
    return make()
  } catch (error) {
    throw error instanceof PosthornError ? error.within(at) : error
  }
}
