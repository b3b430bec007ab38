/** Unknown routes and methods are answered in JSON, since SDKs parse every error response. A browser that opens one gets a page. */
import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"

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
  app.setNotFoundHandler(async (request, reply) => {
    const path = request.url.split("?", 1)[0]!
    patterns ??= [...methods].map(([url, known]) => [patternOf(url), known] as const)
    const allowed = patterns.filter(([pattern]) => pattern.test(path)).flatMap(([, known]) => [...known])
    if (allowed.length === 0 && opensPage(request, path)) return sendPage(request, reply.code(404))
    if (allowed.length === 0) throw ApiError.of(404, "not_found", `there is no ${request.method} ${path}`)
    void reply.header("allow", allowed.join(", "))
    throw ApiError.of(
      405,
      "method_not_allowed",
      `${path} allows ${allowed.join(", ")}, not ${request.method}`,
    )
  })
}

function opensPage({ method, headers }: FastifyRequest, path: string): boolean {
  return method === "GET" && headers.accept?.includes("text/html") === true && !/^\/(api|in)\//.test(path)
}

function patternOf(url: string): RegExp {
  const path = url.replace(/\/$/, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  return new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}/?$`)
}
