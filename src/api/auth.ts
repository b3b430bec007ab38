/** Authentication: identifies the caller before the body is read. */
import type { FastifyRequest } from "fastify"
import type { Posthorn } from "../posthorn.ts"
import { KeyRing } from "../resources/key-ring.ts"
import { requireAccess, requireDeclared } from "./access.ts"
import { withTimeout } from "./admission.ts"
import { type Caller, callerOf } from "./caller.ts"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"
import type { TokenReader } from "./jwt.ts"
import { unsupported } from "./unsupported.ts"

declare module "fastify" {
  interface FastifyRequest {
    /** Null on routes without authentication. */
    caller: Caller | null
  }
}

/** The caller of a request; throws or rejects with a 401. Synchronous when the key is cached. */
export type Identify = (authorization: string | undefined) => Caller | Promise<Caller>

export function authenticate(app: Api, posthorn: Posthorn, readToken: TokenReader | null): Identify {
  const { store, clock } = posthorn.context
  const ring = new KeyRing(store, clock)
  const identify: Identify = (authorization) => callerOf(authorization, ring, readToken)
  const enter = (request: FastifyRequest, caller: Caller) => {
    request.caller = caller
    return requireAccess(caller, request, async (key) => {
      return (await posthorn.tenant(caller.orgId).applications.get(key)).id
    })
  }
  const admit = (request: FastifyRequest): undefined | Promise<void> => {
    const caller = identify(request.headers.authorization)
    return caller instanceof Promise ? caller.then((known) => enter(request, known)) : enter(request, caller)
  }
  app.decorateRequest("caller", null)
  app.addHook("onRoute", requireDeclared)
  app.addHook("onRequest", (request, _reply, done) => {
    const isNothing = request.is404 && unsupported(request) === null
    if (isNothing || request.routeOptions.config.auth === "none") return done()
    const admitted = admit(request)
    return admitted === undefined ? done() : withTimeout(request, admitted)
  })
  app.addHook("onClose", () => ring.close())
  return identify
}

/** Whether the key of an earlier request is still good; rejects when the store cannot say. */
export async function isStillValid(identify: Identify, authorization: string | undefined): Promise<boolean> {
  try {
    await identify(authorization)
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return false
    throw error
  }
}

export function requireCaller(request: FastifyRequest): Caller {
  if (request.caller === null)
    throw new Error(`${request.routeOptions.url} asks for no key, and has no caller`)
  return request.caller
}
