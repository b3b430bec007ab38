/** Authentication: identifies the caller before the body is read. */
import type { IncomingHttpHeaders } from "node:http"
import type { FastifyRequest } from "fastify"
import type { Posthorn } from "../posthorn.ts"
import { KeyRing } from "../resources/key-ring.ts"
import { requireAccess, requireDeclared } from "./access.ts"
import { withTimeout } from "./admission.ts"
import { type Caller, callerOf } from "./caller.ts"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"
import type { TokenReader } from "./jwt.ts"
import type { SessionCookies } from "./session-cookies.ts"
import { unsupported } from "./unsupported.ts"

declare module "fastify" {
  interface FastifyRequest {
    /** Null on routes without authentication. */
    caller: Caller | null
  }
}

/**
 * The caller of a request; throws or rejects with a 401. Synchronous when the key is cached. `isRequest` is false when the caller of an
 * earlier request is checked again.
 */
export type Identify = (headers: IncomingHttpHeaders, isRequest?: boolean) => Caller | Promise<Caller>

export function authenticate(
  app: Api,
  posthorn: Posthorn,
  readToken: TokenReader | null,
  cookies: SessionCookies,
): Identify {
  const { store, clock } = posthorn.context
  const ring = new KeyRing(store, clock)
  const identify: Identify = (headers, isRequest = true) =>
    callerOf(headers, (token) => ring.verify(token, undefined, isRequest), readToken, cookies)
  const enter = (request: FastifyRequest, caller: Caller) => {
    request.caller = caller
    return requireAccess(caller, request, async (key) => {
      return (await posthorn.tenant(caller.orgId).applications.get(key)).id
    })
  }
  const admit = (request: FastifyRequest): undefined | Promise<void> => {
    const caller = identify(request.headers)
    return caller instanceof Promise ? caller.then((known) => enter(request, known)) : enter(request, caller)
  }
  app.decorateRequest("caller", null)
  app.addHook("onRoute", requireDeclared)
  app.addHook("onRequest", (request, reply, done) => {
    const isNothing = request.is404 && unsupported(request) === null
    if (isNothing || request.routeOptions.config.auth === "none") return done()
    // Neither the browser of a session that has ended nor a proxy may show an answer again.
    void reply.header("cache-control", "no-store")
    const admitted = admit(request)
    return admitted === undefined ? done() : withTimeout(request, admitted)
  })
  app.addHook("onClose", () => ring.close())
  return identify
}

/** Whether the key of an earlier request is still good; rejects when the store cannot say. */
export async function isStillValid(identify: Identify, headers: IncomingHttpHeaders): Promise<boolean> {
  try {
    await identify(headers, false)
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
