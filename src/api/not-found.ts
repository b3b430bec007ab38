/** Unknown routes and methods are answered in JSON, since SDKs parse every error response. A browser that opens one gets a page. */
import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify"
import { RELAY_PATH } from "../core/relay-protocol.ts"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"
import { unsupported } from "./unsupported.ts"

type SendPage = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** `sendPage` sends the dashboard, which says that the address leads nowhere. */
export function answerNotFound(app: Api, sendPage: SendPage): void {
  const methods = new Map<string, Set<string>>()
  app.addHook("onRoute", ({ method, url }: RouteOptions) => {
    const known = methods.get(url) ?? new Set<string>()
    for (const one of [method].flat()) known.add(one)
    methods.set(url, known)
  })
  let patterns: (readonly [RegExp, Set<string>])[] | null = null
  const allowedAt = (path: string) => {
    patterns ??= [...methods].map(([url, known]) => [patternOf(url), known] as const)
    return patterns.filter(([pattern]) => pattern.test(path)).flatMap(([, known]) => [...known])
  }
  const refusalOf = (request: FastifyRequest, reply: FastifyReply): ApiError => {
    const path = pathOf(request)
    if (path === RELAY_PATH) {
      void reply.header("upgrade", "websocket")
      return noWebSocket()
    }
    const allowed = allowedAt(path)
    if (allowed.length === 0) return ApiError.of(404, "not_found", `there is no ${request.method} ${path}`)
    void reply.header("allow", allowed.join(", "))
    return ApiError.of(
      405,
      "method_not_allowed",
      `${path} allows ${allowed.join(", ")}, not ${request.method}`,
    )
  }
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request)
    if (allowedAt(path).length === 0 && opensPage(request, path)) return sendPage(request, reply.code(404))
    throw refusalOf(request, reply)
  })
  // Fastify would read the body first, for anybody.
  app.addHook("onRequest", (request, reply, done) => {
    const mayHaveBody = request.method !== "GET" && request.method !== "HEAD"
    const isUnknown = request.is404 && mayHaveBody && unsupported(request) === null
    done(isUnknown ? refusalOf(request, reply) : undefined)
  })
}

function pathOf({ url }: FastifyRequest): string {
  return url.split("?", 1)[0]!
}

function noWebSocket(): ApiError {
  return ApiError.of(
    426,
    "upgrade_required",
    "agents connect here with a WebSocket, and this request is none: a proxy in between must pass on the headers Upgrade and Connection",
  )
}

function opensPage({ method, headers }: FastifyRequest, path: string): boolean {
  return method === "GET" && headers.accept?.includes("text/html") === true && !/^\/(api|in)\//.test(path)
}

function patternOf(url: string): RegExp {
  const path = url.replace(/\/$/, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  return new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}/?$`)
}
