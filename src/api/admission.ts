/**
 * Admission control: a limit on concurrent requests and on bytes of bodies. A request above it gets 503 at once. An admitted request
 * is answered before its timeout, and keeps its slot until all work on it has ended.
 */
import type { FastifyRequest } from "fastify"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"

export interface AdmissionLimits {
  readonly maxRequests: number
  readonly maxBodyBytes: number
  /** Timeout of each step of a request: identification, handler, stored response. */
  readonly handlerMs: number
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Admitted under overload too: an overloaded server must pass its health checks. */
    always?: boolean
    /** The response is long, and callers without a key get it. */
    isForStrangers?: boolean
  }
  interface FastifyRequest {
    slot: RequestSlot | null
  }
}

/**
 * Whose limit a request counts towards. Requests without a key have room of their own, so that strangers who send or read slowly take no
 * place of callers with one: `sender` for those that may have a body, `reader` for the others. `always`: none.
 */
type Guest = "caller" | "sender" | "reader" | "always"

class InFlight {
  readonly slots = new Set<RequestSlot>()
  bytes = 0
  readonly #maxRequests: number
  readonly #maxBodyBytes: number

  constructor({ maxRequests, maxBodyBytes }: Pick<AdmissionLimits, "maxRequests" | "maxBodyBytes">) {
    this.#maxRequests = maxRequests
    this.#maxBodyBytes = maxBodyBytes
  }

  requireSlot(): void {
    if (this.slots.size >= this.#maxRequests) throw overloaded("too many requests are in flight")
  }

  requireRoomFor(bytes: number): void {
    if (this.bytes + bytes > this.#maxBodyBytes) throw overloaded("too many bytes of requests are being read")
  }
}

const UNLIMITED = { maxRequests: Number.POSITIVE_INFINITY, maxBodyBytes: Number.POSITIVE_INFINITY }

export class Admission {
  readonly limits: AdmissionLimits
  readonly #inFlight: { readonly [G in Guest]: InFlight }

  constructor(limits: AdmissionLimits) {
    const { maxRequests, maxBodyBytes } = limits
    this.limits = limits
    const quarter = { maxRequests: Math.ceil(maxRequests / 4), maxBodyBytes: Math.ceil(maxBodyBytes / 4) }
    this.#inFlight = {
      caller: new InFlight(limits),
      sender: new InFlight(quarter),
      reader: new InFlight(quarter),
      always: new InFlight(UNLIMITED),
    }
  }

  /** Throws when all slots are taken. */
  admit(guest: Guest = "caller"): RequestSlot {
    const inFlight = this.#inFlight[guest]
    inFlight.requireSlot()
    return new RequestSlot(inFlight, this.limits.handlerMs)
  }
}

/** A request's share of the limits, held while its client waits for the response or work on it continues. */
export class RequestSlot {
  readonly #inFlight: InFlight
  readonly handlerMs: number
  #bodyBytes = 0
  #running = 0
  #isClientDone = false

  constructor(inFlight: InFlight, handlerMs: number) {
    this.#inFlight = inFlight
    this.handlerMs = handlerMs
    inFlight.slots.add(this)
  }

  /** Throws when the body exceeds the bytes that are left. A released slot takes no bytes: nothing would release them. */
  expectBody(bytes: number): void {
    this.#inFlight.requireRoomFor(bytes)
    if (!this.#inFlight.slots.has(this)) return
    this.#bodyBytes = bytes
    this.#inFlight.bytes += bytes
  }

  /** The client has its response, or has disconnected. */
  leave(): void {
    this.#isClientDone = true
    this.#releaseIfUnused()
  }

  /** Returns a function that ends the work. */
  startWork(): () => void {
    this.#running++
    if (!this.#inFlight.slots.has(this)) {
      this.#inFlight.slots.add(this)
      this.#inFlight.bytes += this.#bodyBytes
    }
    return () => {
      this.#running--
      this.#releaseIfUnused()
    }
  }

  #releaseIfUnused(): void {
    if (!this.#isClientDone || this.#running > 0 || !this.#inFlight.slots.delete(this)) return
    this.#inFlight.bytes -= this.#bodyBytes
  }
}

/**
 * Rejects when `work` exceeds the timeout; the slot is held until the work has ended. Fastify's own timeout covers only the reading
 * of the body.
 */
export function withTimeout<T>({ slot }: Pick<FastifyRequest, "slot">, work: Promise<T>): Promise<T> {
  if (slot === null) return work
  const endWork = slot.startWork()
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(timedOut()), slot.handlerMs)
  const endWith = <V>(settle: (value: V) => void) => {
    return (value: V) => {
      clearTimeout(timer)
      endWork()
      settle(value)
    }
  }
  work.then(endWith(resolve), endWith(reject))
  return promise
}

export function registerAdmission(app: Api, admission: Admission): void {
  app.decorateRequest("slot", null)
  app.addHook("onRoute", (route) => {
    const { handler } = route
    route.handler = function (request, reply) {
      const result: unknown = handler.call(this, request, reply)
      return result instanceof Promise ? withTimeout(request, result) : result
    }
  })
  app.addHook("onRequest", (request, reply, done) => {
    const slot = admission.admit(guestOf(request))
    request.slot = slot
    const leave = () => slot.leave()
    reply.raw.on("finish", leave).on("close", leave)
    done()
  })
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    const expected = expectedBytes(request)
    if (expected > 0) request.slot?.expectBody(expected)
    done()
  })
}

/** All other requests are refused without a key before their body is read. */
function guestOf({ method, is404, routeOptions: { config } }: FastifyRequest): Guest {
  if (config.always) return "always"
  if (method === "GET" || method === "HEAD") return is404 || config.isForStrangers ? "reader" : "caller"
  return is404 || config.auth === "none" ? "sender" : "caller"
}

/** The content length; for a chunked body the most that is allowed. */
function expectedBytes({ headers, routeOptions }: FastifyRequest): number {
  const limit = routeOptions.bodyLimit ?? 0
  const length = headers["content-length"]
  if (length === undefined) return headers["transfer-encoding"] === undefined ? 0 : limit
  return Math.min(Number(length) || 0, limit)
}

function overloaded(detail: string): ApiError {
  return ApiError.of(503, "overloaded", `${detail}; try again`, 1)
}

function timedOut(): ApiError {
  return ApiError.of(
    503,
    "timeout",
    "the store did not answer in time, and may have done what was asked; repeat it with the same Idempotency-Key",
    1,
  )
}
