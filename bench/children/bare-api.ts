/** A Fastify server with the route that accepts messages: the same limits and the same shapes, but no checks and no store. */
import fastify from "fastify"

interface Message {
  readonly eventType: string
  readonly payload: object
}

const BODY = {
  type: "object",
  required: ["eventType", "payload"],
  properties: { eventType: { type: "string", maxLength: 256 }, payload: { type: "object" } },
}

const app = fastify({ bodyLimit: 1_048_576 + 65_536, keepAliveTimeout: 72_000 })
app.post<{ Body: Message }>("/api/v1/app/:app_id/msg", { schema: { body: BODY } }, async (request, reply) => {
  const { eventType, payload } = request.body
  return reply.code(202).send({
    id: "msg_2qYx5kXnVvGmR7sTtZp0aB1cD3e",
    eventType,
    payload,
    channels: null,
    tags: null,
    timestamp: new Date(),
    priority: "normal",
    matched: 0,
  })
})
await app.listen({ port: 0, host: "127.0.0.1" })
process.send!({ origin: `http://127.0.0.1:${(app.server.address() as { port: number }).port}` })
process.on("disconnect", () => process.exit(0))
