/** One log line for each request, with an id that the caller may choose. */
import { randomUUID } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { type FastifyReply, type FastifyRequest, LogController } from "fastify"
import type { Instruments } from "../observe/instruments.ts"
import type { Caller } from "./caller.ts"
import type { Api } from "./context.ts"

declare module "fastify" {
  interface FastifyRequest {
    /** The response goes on until its reader leaves. It was logged and measured when it began. */
    isStreaming: boolean
  }
}

/** Svix's clients send an id. Ids that could break a log line are replaced. */
export function requestId({ headers }: IncomingMessage): string {
  const given = headers["svix-req-id"]
  return typeof given === "string" && /^[\w-]{1,64}$/.test(given) ? given : randomUUID()
}

interface LoggedRequest {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly caller: Caller | null
}

/** The secret of a source's URL, also where the path is wrong. The id in front of it stays. */
const SOURCE_SECRET = /(?<=\/in\/+[0-9A-Za-z]{27})[0-9A-Za-z]+/g

export function requestFields({ method, url, caller }: LoggedRequest, status: number, elapsedMs: number) {
  return {
    method,
    url: url?.replace(SOURCE_SECRET, "…"),
    status,
    durationMs: Math.round(elapsedMs),
    organization: caller?.orgId,
    key: caller?.keyId ?? undefined,
    session: caller?.browserSession ?? undefined,
  }
}

export class RequestLog extends LogController {
  readonly #instruments: Instruments

  constructor(instruments: Instruments) {
    super({ requestIdLogLabel: "requestId" })
    this.#instruments = instruments
  }

  override incomingRequest(): void {}

  override routeNotFound(): void {}

  override requestCompleted(error: Error | null, request: FastifyRequest, reply: FastifyReply): void {
    const { method, routeOptions } = request
    if (request.isStreaming) return
    this.#instruments.requestAnswered(method, routeOptions.url ?? null, reply.statusCode, reply.elapsedTime)
    const about = requestFields(request, reply.statusCode, reply.elapsedTime)
    if (error) reply.log.warn({ ...about, err: error }, "request aborted")
    else reply.log.info(about, "request")
  }

  /** Called when a response begins that goes on until its reader leaves. */
  streamBegan(request: FastifyRequest, reply: FastifyReply): void {
    this.requestCompleted(null, request, reply)
    request.isStreaming = true
  }
}

export function sendRequestId(app: Api): void {
  app.decorateRequest("isStreaming", false)
  app.addHook("onRequest", (request, reply, done) => {
    void reply.header("x-request-id", request.id)
    done()
  })
}
