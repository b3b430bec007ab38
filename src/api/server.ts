/** The HTTP server: Fastify with its hooks and routes. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import fastify, { type FastifyBaseLogger } from "fastify"
import type { SettingInForce } from "../config.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import { Admission, registerAdmission } from "./admission.ts"
import { authenticate, isStillValid, requireCaller } from "./auth.ts"
import { readBodies } from "./body.ts"
import { recordChanges } from "./change-log.ts"
import { type Api, type Context, PREFIX, type Routes } from "./context.ts"
import { allowBrowsers } from "./cors.ts"
import { ApiError, ENVELOPE_BYTES, handleError, sendError } from "./errors.ts"
import { registerIdempotency } from "./idempotency.ts"
import { inboundListener } from "./inbound-listener.ts"
import type { TokenReader } from "./jwt.ts"
import { RequestLog, requestId, sendRequestId } from "./logging.ts"
import { messageListener } from "./message-listener.ts"
import { answerNotFound } from "./not-found.ts"
import { parseQuery, refuseUndeclared } from "./query-string.ts"
import { serialize } from "./raw-json.ts"
import { relaySocket } from "./relay-socket.ts"
import { ROUTES } from "./routes/all.ts"
import { docsRoutes } from "./routes/docs.ts"
import { messageRoutes } from "./routes/messages.ts"
import { pageRoutes } from "./routes/pages.ts"
import { sourceRoutes } from "./routes/sources.ts"
import { SessionCookies } from "./session-cookies.ts"
import { connectionOptions, TIMEOUTS, type Timeouts } from "./timeouts.ts"
import { refuseUnsupported } from "./unsupported.ts"
import { loadCompiler, validatorCompiler } from "./validation.ts"

export interface ServerSettings {
  readonly logger: Logger
  readonly maxPayloadBytes: number
  /** Limit of concurrent requests. */
  readonly maxRequests: number
  /** How long a shutdown waits for requests in flight. */
  readonly closeTimeoutMs: number
  /** The address under which clients reach the server. */
  readonly publicUrl?: string | null
  /** Origins whose pages may show the portal in a frame. */
  readonly "portal.frameAncestors"?: readonly string[] | null
  /** The settings that the server was started with, for `GET /setting`. */
  readonly inForce?: readonly SettingInForce[]
  /** Verifies Svix's tokens; without it only keys are accepted. */
  readonly readToken?: TokenReader | null
  /** Limit of bytes of concurrent bodies; 64 MiB, or four of the largest. */
  readonly maxBodyBytes?: number
  readonly timeouts?: Partial<Timeouts>
  /** For tests. */
  readonly routes?: readonly Routes[]
}

/** Answers a request and returns true, or leaves it to the others. */
type Listener = (request: IncomingMessage, response: ServerResponse) => boolean

const LONGEST_NAME = 256
const IDLE_CHECK_MS = 100

/** Does not listen yet: call `listen`, or `inject` requests. Closing the server closes Posthorn after the requests in flight. */
export function createServer(posthorn: Posthorn, settings: ServerSettings): Api {
  const timeouts = { ...TIMEOUTS, ...settings.timeouts }
  const bodyLimit = settings.maxPayloadBytes + ENVELOPE_BYTES
  const requestLog = new RequestLog(posthorn.context.instruments)
  const app: Api = fastify({
    ...connectionOptions(timeouts),
    loggerInstance: settings.logger as FastifyBaseLogger,
    logController: requestLog,
    genReqId: requestId,
    bodyLimit,
    // Fastify's own response has another shape.
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: LONGEST_NAME,
      querystringParser: parseQuery,
    },
    // Tests validate responses against the schemas. JSON.stringify is as fast as generated serializers.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => () => serialize,
      },
    },
    frameworkErrors: (error, request, reply) => void handleError(error, request, reply),
  })
  app.setErrorHandler((error: Error, request, reply) => handleError(error, request, reply))
  sendRequestId(app)
  allowBrowsers(app)
  const isClosing = closeGracefully(app, posthorn, settings.closeTimeoutMs)
  const admission = new Admission({
    maxRequests: settings.maxRequests,
    maxBodyBytes: settings.maxBodyBytes ?? Math.max(67_108_864, 4 * bodyLimit),
    handlerMs: timeouts.handlerMs,
  })
  registerAdmission(app, admission)
  answerNotFound(app, (request, reply) => sendDashboard(request, reply))
  // onClose hooks run in reverse order: Posthorn closes last.
  app.addHook("onClose", () => posthorn.close())
  refuseUndeclared(app)
  const cookies = new SessionCookies(settings.publicUrl ?? null)
  const identify = authenticate(app, posthorn, settings.readToken ?? null, cookies)
  refuseUnsupported(app)
  readBodies(app)
  loadCompiler(app)
  registerIdempotency(app, posthorn.context)
  const changes = recordChanges(app, posthorn)
  const context: Context = {
    posthorn,
    requestLog,
    publicUrl: settings.publicUrl ?? null,
    tenant(request) {
      const { run } = request
      return posthorn.tenant(requireCaller(request).orgId, run === null ? {} : { ids: run.ids })
    },
    isStillValid: ({ headers }) => isStillValid(identify, headers),
    identify,
    cookies,
    changes,
    settings: settings.inForce ?? [],
  }
  const routes = settings.routes ?? ROUTES
  const { logger } = settings
  const listeners: Listener[] = []
  if (routes.includes(sourceRoutes)) {
    const bodyMs = timeouts.inboundBodyMs
    listeners.push(inboundListener({ posthorn, admission, logger, bodyMs, isClosing }))
  }
  if (routes.includes(messageRoutes))
    listeners.push(messageListener({ posthorn, identify, admission, isClosing, bodyLimit, logger }))
  if (listeners.length > 0)
    app.server.removeAllListeners("request").on("request", (request, response) => {
      if (!listeners.some((answers) => answers(request, response))) app.routing(request, response)
    })
  app.server.on("upgrade", relaySocket({ posthorn, identify, logger, isClosing }))
  void app.register(
    async (api) => {
      for (const register of routes) register(api as Api, context)
    },
    { prefix: PREFIX },
  )
  const sendDashboard = pageRoutes(app, { frameAncestors: settings["portal.frameAncestors"] ?? [] })
  docsRoutes(app, async () => (await import("./openapi.ts")).describeApi(routes, context))
  return app
}

/** Refuses new requests, and destroys connections that are open after the timeout. The result says whether the server is closing. */
function closeGracefully(app: Api, posthorn: Posthorn, closeTimeoutMs: number): () => boolean {
  let closing = false
  const sockets = new Set<Socket>()
  app.server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  app.addHook("onRequest", (_request, reply, done) => {
    if (!closing) return done()
    void reply.header("connection", "close")
    void sendError(ApiError.of(503, "closing", "the server is stopping; try again", 1), reply)
  })
  app.addHook("preClose", async () => {
    closing = true
    // Node counts a connection without a request as active until its header timeout.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroySoon()
    // The server waits for their connections, too, and Posthorn is closed after it.
    posthorn.agentHub?.drain()
    const deadline = setTimeout(() => {
      // Also those of agents, of which Node's server does not know any more.
      for (const socket of sockets) socket.destroy()
    }, closeTimeoutMs)
    // A connection whose request has ended becomes idle, and would stay open.
    const idle = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS)
    app.server.once("close", () => {
      clearTimeout(deadline)
      clearInterval(idle)
    })
  })
  return () => closing
}
