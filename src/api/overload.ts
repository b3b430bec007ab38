/**
 * Sheds what is too much: so many requests and so many bytes of bodies at once, and everybody else is told at once to come again.
 * Whoever was let in is answered in time, and keeps the place until nobody works on the request any more.
 */
import type { FastifyRequest } from "fastify"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"

export interface Limits {
  readonly maxRequests: number
  readonly maxBodyBytes: number
  /** How long each step of the work may take before the caller is told to come again. */
  readonly handlerMs: number
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

/** What all of them have taken. */
interface Taken {
  readonly slots: Set<Slot>
  bytes: number
}

/** What may be under way, and what is. */
export class Places {
  readonly #limits: Limits
  readonly #taken: Taken = { slots: new Set(), bytes: 0 }
  readonly #uncounted: Taken = { slots: new Set(), bytes: 0 }

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Throws when there is none left. */
  take(always = false): Slot {
    const { maxRequests, handlerMs } = this.#limits
    if (always) return new Slot(this.#uncounted, handlerMs)
    if (this.#taken.slots.size >= maxRequests) throw tooMuch("too many requests are under way")
    return new Slot(this.#taken, handlerMs)
  }

  /** Throws when there is no room for so many. */
  expectBody(slot: Slot | null, bytes: number): void {
    if (this.#taken.bytes + bytes > this.#limits.maxBodyBytes)
      throw tooMuch("too many bytes of requests are being read")
    slot?.expectBody(bytes)
  }
}

/** One request's share. It is kept while somebody waits for the answer, and while anybody still works on one. */
export class Slot {
  readonly #taken: Taken
  readonly handlerMs: number
  #bodyBytes = 0
  #works = 0
  #gone = false

  constructor(taken: Taken, handlerMs: number) {
    this.#taken = taken
    this.handlerMs = handlerMs
    taken.slots.add(this)
  }

  /** Who went away before takes nothing: nobody would give it back. */
  expectBody(bytes: number): void {
    if (!this.#taken.slots.has(this)) return
    this.#bodyBytes = bytes
    this.#taken.bytes += bytes
  }

  /** The client has its answer, or has gone away. */
  leave(): void {
    this.#gone = true
    this.#settle()
  }

  /** Somebody works on the answer, until what is given back is called. */
  begin(): () => void {
    this.#works++
    this.#hold()
    return () => {
      this.#works--
      this.#settle()
    }
  }

  #hold(): void {
    if (this.#taken.slots.has(this)) return
    this.#taken.slots.add(this)
    this.#taken.bytes += this.#bodyBytes
  }

  #settle(): void {
    if (!this.#gone || this.#works > 0 || !this.#taken.slots.delete(this)) return
    this.#taken.bytes -= this.#bodyBytes
  }
}

/**
 * For all that waits for the store. Rejects when it takes too long; the place is kept as long as the work really goes on. The
 * framework's own timeout ends with the reading of the body, and would let every POST hang.
 */
export function inTime<T>({ slot }: Pick<FastifyRequest, "slot">, work: Promise<T>): Promise<T> {
  if (slot === null) return work
  const end = slot.begin()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(tooLate()), slot.handlerMs)
    const isOver = () => {
      clearTimeout(timer)
      end()
    }
    work.then(
      (value) => {
        isOver()
        resolve(value)
      },
      (error) => {
        isOver()
        reject(error)
      },
    )
  })
}

export function shedOverload(app: Api, places: Places): void {
  app.decorateRequest("slot", null)
  app.addHook("onRoute", (route) => {
    const { handler } = route
    route.handler = function (request, reply) {
      const result: unknown = handler.call(this, request, reply)
      return result instanceof Promise ? inTime(request, result) : result
    }
  })
  app.addHook("onRequest", (request, reply, done) => {
    const slot = places.take(request.routeOptions.config.always)
    request.slot = slot
    const leave = () => slot.leave()
    reply.raw.on("finish", leave).on("close", leave)
    done()
  })
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    const expected = expectedBytes(request)
    if (expected > 0) places.expectBody(request.slot, expected)
    done()
  })
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

function tooLate(): ApiError {
  return ApiError.of(
    503,
    "timeout",
    "the store did not answer in time, and may have done what was asked; repeat it with the same Idempotency-Key",
    1,
  )
}
