/** The same idempotency key and body get the same answer, also at the same moment, also after a crash. */
import { createHash } from "node:crypto"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { Ids } from "../core/ids.ts"
import { seededIds } from "../core/seeded-ids.ts"
import { Answers, type Asked, type Parts, type Run } from "./answers.ts"
import { requireCaller } from "./auth.ts"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"
import { inTime } from "./overload.ts"
import { JSON_TYPE } from "./shapes.ts"

type Running = Run & { readonly asked: Asked; readonly ids: Ids }

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route keeps its own record: the answer need not be kept beside it. */
    ownIdempotency?: boolean
  }
  interface FastifyRequest {
    /** Present while the request is the one that makes the answer. Its ids come out the same when it is run again. */
    run: Running | null
  }
}

const LONGEST_KEY = 256

export function answerOnce(app: Api, parts: Parts): void {
  const answers = new Answers(parts)
  app.decorateRequest("run", null)
  const begin = async (request: FastifyRequest, reply: FastifyReply, asked: Asked) => {
    let late = false
    const beginning = answers.begin(asked).then(async (begun) => {
      // The caller was told to come again: nobody works on it.
      if (late && "seed" in begun) await answers.finish(begun, asked, { status: 503, body: "" })
      return begun
    })
    const begun = await inTime(request, beginning).catch((error) => {
      late = true
      throw error
    })
    if ("seed" in begun) {
      request.run = { ...begun, asked, ids: seededIds(begun.seed, begun.atMs) }
      return
    }
    return reply.code(begun.status).type(JSON_TYPE).send(begun.body)
  }
  const finish = async (request: FastifyRequest, reply: FastifyReply, run: Running, payload: unknown) => {
    request.run = null
    const body = typeof payload === "string" ? payload : ""
    const finishing = answers.finish(run, run.asked, { status: reply.statusCode, body })
    const kept = inTime(request, finishing).catch((error) => {
      // The work is done; whoever repeats it, having been told that it took too long, will find it by its ids.
      request.log.warn({ err: error }, "the answer could not be kept for a repeat")
    })
    // Whoever is told that the store does not answer must not wait for the store. A repeat waits.
    if (reply.statusCode < 500) await kept
  }
  // Most requests have nothing to do here: they go on at once, and for the others the framework waits.
  app.addHook("preHandler", (request, reply, done) => {
    const asked = askedBy(request)
    return asked === null ? done() : begin(request, reply, asked)
  })
  app.addHook("onSend", (request, reply, payload, done) => {
    const { run } = request
    return run === null ? done(null, payload) : finish(request, reply, run, payload)
  })
}

function askedBy(request: FastifyRequest): Asked | null {
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
    // Another caller's key is another request, even in the same words.
    name: digest(request.url, "\n", keyId ?? appId ?? "", "\n", key),
    digest: digest(request.rawBody ?? ""),
  }
}
