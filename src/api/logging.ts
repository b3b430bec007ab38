/** One line for each request, under an id that the caller may choose. */
import { randomUUID } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { type FastifyReply, type FastifyRequest, LogController } from "fastify"
import type { Api } from "./context.ts"

/** Svix's clients send one; what could break a log line is not taken. */
export function requestId({ headers }: IncomingMessage): string {
  return requestIdOf(headers["svix-req-id"])
}

export function requestIdOf(given: unknown): string {
  return typeof given === "string" && /^[\w-]{1,64}$/.test(given) ? given : randomUUID()
}

export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: "requestId" })
  }

  override incomingRequest(): void {}

  override routeNotFound(): void {}

  override requestCompleted(error: Error | null, request: FastifyRequest, reply: FastifyReply): void {
    const { method, url, caller } = request
    const about = {
      method,
      url,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      organization: caller?.orgId,
      key: caller?.keyId ?? undefined,
    }
    if (error) reply.log.warn({ ...about, err: error }, "request broken off")
    else reply.log.info(about, "request")
  }
}

export function tellRequestId(app: Api): void {
  app.addHook("onRequest", (request, reply, done) => {
    void reply.header("x-request-id", request.id)
    done()
  })
}
