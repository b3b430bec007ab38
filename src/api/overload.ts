/** Sheds what is too much: so many requests and so many bytes of bodies at once, and everybody else is told at once to come again. */
import type { FastifyRequest } from "fastify"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"

export interface Limits {
  readonly maxRequests: number
  readonly maxBodyBytes: number
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Answered also when too much is under way: whoever asks whether we live must not be told that we do not. */
    always?: boolean
  }
  interface FastifyRequest {
    slot: Slot | null
  }
}

/** One request's share. It is given back when the connection is done with it and its handler too, if that has begun. */
class Slot {
  readonly #release: (bodyBytes: number) => void
  bodyBytes = 0
  #begun = false
  #answered = false
  #gone = false
  #held = true

  constructor(release: (bodyBytes: number) => void) {
    this.#release = release
  }

  begin(): void {
    this.#begun = true
  }

  answer(): void {
    this.#answered = true
    this.#settle()
  }

  leave(): void {
    this.#gone = true
    this.#settle()
  }

  /** A client that goes away while its request is worked on does not make room for another. */
  #settle(): void {
    if (!this.#held || !this.#gone || (this.#begun && !this.#answered)) return
    this.#held = false
    this.#release(this.bodyBytes)
  }
}

export function shedOverload(app: Api, { maxRequests, maxBodyBytes }: Limits): void {
  let requests = 0
  let bytes = 0
  app.decorateRequest("slot", null)
  app.addHook("onRequest", async (request, reply) => {
    if (request.routeOptions.config.always) return
    if (requests >= maxRequests) throw tooMuch("too many requests are under way")
    requests++
    const slot = new Slot((bodyBytes) => {
      requests--
      bytes -= bodyBytes
    })
    request.slot = slot
    reply.raw.once("finish", () => slot.leave()).once("close", () => slot.leave())
  })
  app.addHook("preParsing", async (request) => {
    const expected = expectedBytes(request)
    if (request.slot === null || expected === 0) return
    if (bytes + expected > maxBodyBytes) throw tooMuch("too many bytes of requests are being read")
    bytes += expected
    request.slot.bodyBytes = expected
  })
  app.addHook("preHandler", async (request) => request.slot?.begin())
  app.addHook("onSend", async (request) => request.slot?.answer())
}

/** As said, or the most that is allowed where nobody said. */
function expectedBytes({ headers, routeOptions }: FastifyRequest): number {
  const most = routeOptions.bodyLimit ?? 0
  const said = headers["content-length"]
  if (said === undefined) return headers["transfer-encoding"] === undefined ? 0 : most
  return Math.min(Number(said) || 0, most)
}

function tooMuch(detail: string): ApiError {
  return ApiError.of(503, "overloaded", `${detail}; try again`, 1)
}
