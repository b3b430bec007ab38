/** Requests with the same idempotency key and body get the same response, also concurrent ones and after a crash. */
import { createHash } from "node:crypto"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { Ids } from "../core/ids.ts"
import { seededIds } from "../core/seeded-ids.ts"
import { withTimeout } from "./admission.ts"
import { requireCaller } from "./auth.ts"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"
import {
  type IdempotencyDependencies,
  type IdempotentRequest,
  IdempotentResponses,
  type RequestRun,
} from "./idempotent-responses.ts"
import { JSON_TYPE } from "./schemas/common.ts"

type IdempotentRun = RequestRun & { readonly identity: IdempotentRequest; readonly ids: Ids }

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route handles idempotency keys itself: no response is stored for it. */
    ownIdempotency?: boolean
  }
  interface FastifyRequest {
    /** Null when the request has no idempotency key. A repeated run makes the same ids. */
    run: IdempotentRun | null
  }
}

const LONGEST_KEY = 256

export function registerIdempotency(app: Api, dependencies: IdempotencyDependencies): void {
  const responses = new IdempotentResponses(dependencies)
  app.decorateRequest("run", null)
  const begin = async (request: FastifyRequest, reply: FastifyReply, identity: IdempotentRequest) => {
    let late = false
    const beginning = responses.begin(identity).then(async (begun) => {
      // The request has already been answered with a timeout: end its run.
      if (late && "seed" in begun) await responses.finish(begun, identity, { status: 503, body: "" })
      return begun
    })
    const begun = await withTimeout(request, beginning).catch((error) => {
      late = true
      throw error
    })
    if ("seed" in begun) {
      request.run = { ...begun, identity, ids: seededIds(begun.seed, begun.atMs) }
      return
    }
    return reply.code(begun.status).type(JSON_TYPE).send(begun.body)
  }
  const finish = async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    const run = request.run!
    request.run = null
    const body = typeof payload === "string" ? payload : ""
    const finishing = responses.finish(run, run.identity, { status: reply.statusCode, body })
    const stored = withTimeout(request, finishing).catch((error) => {
      // The work is done. A repeat makes the same ids, and finds it.
      request.log.warn({ err: error }, "the response could not be stored for a repeat")
    })
    // An error response may mean that the store hangs: it must not wait for the store.
    if (reply.statusCode < 500) await stored
  }
  // Requests without a key continue synchronously.
  app.addHook("preHandler", (request, reply, done) => {
    const identity = identify(request)
    return identity === null ? done() : begin(request, reply, identity)
  })
  app.addHook("onSend", (request, reply, payload, done) => {
    return request.run === null ? done(null, payload) : finish(request, reply, payload)
  })
}

function identify(request: FastifyRequest): IdempotentRequest | null {
  const key = request.headers["idempotency-key"]
  const { auth, ownIdempotency } = request.routeOptions.config
  if (key === undefined || request.method !== "POST" || request.is404) return null
  if (auth === "none" || ownIdempotency) return null
  if (typeof key !== "string" || key === "" || key.length > LONGEST_KEY)
    throw ApiError.invalidAt(["header", "idempotency-key"], `must be 1 to ${LONGEST_KEY} characters`)
  const digest = (...parts: (string | Buffer)[]) => {
    const hash = createHash("sha256")
    for (const part of parts) hash.update(part)
    return hash.digest("base64url")
  }
  const { orgId, appId, keyId } = requireCaller(request)
  return {
    orgId,
    // Two callers may use the same idempotency key for different requests.
    name: digest(request.url, "\n", keyId ?? appId ?? "", "\n", key),
    digest: digest(request.rawBody ?? ""),
  }
}
