/** The HTTP server: what every request goes through, and the routes at the end of it. */
import type { Socket } from "node:net"
import fastify, { type FastifyBaseLogger } from "fastify"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import { Admission, registerAdmission } from "./admission.ts"
import { authenticate, requireCaller } from "./auth.ts"
import { readBodies } from "./body.ts"
import { connectionOptions, TIMEOUTS, type Timeouts } from "./connections.ts"
import { type Api, type Context, PREFIX, type Routes } from "./context.ts"
import { allowBrowsers } from "./cors.ts"
import { ApiError, ENVELOPE_BYTES, handleError, sendError } from "./errors.ts"
import { registerIdempotency } from "./idempotency.ts"
import type { TokenReader } from "./jwt.ts"
import { RequestLog, requestId, sendRequestId } from "./logging.ts"
import { messageListener } from "./message-listener.ts"
import { answerNotFound } from "./not-found.ts"
import { parseQuery, refuseUnknownQueries } from "./query-string.ts"
import { ROUTES } from "./routes/all.ts"
import { docsRoutes } from "./routes/docs.ts"
import { messageRoutes } from "./routes/messages.ts"
import { refuseUnsupported } from "./unsupported.ts"
import { loadCompiler, validatorCompiler } from "./validation.ts"

export interface ServerSettings {
  readonly logger: Logger
  readonly maxPayloadBytes: number
  /** The most requests under way. */
  readonly maxRequests: number
  /** How long a stop waits for those under way. */
  readonly closeTimeoutMs: number
  /** Where others reach the server. */
  readonly publicUrl?: string | null
  /** Reads Svix's tokens; without it only keys are known. */
  readonly readToken?: TokenReader | null
  /** The most bytes of bodies at once; 64 MiB, or four of the largest. */
  readonly maxBodyBytes?: number
  readonly timeouts?: Timeouts
  /** Those of the API unless told. */
  readonly routes?: readonly Routes[]
}

const LONGEST_NAME = 256
const IDLE_CHECK_MS = 100

/** Listens to nobody yet: `listen`, or `inject` requests. Closing it closes the Posthorn, when the requests under way are done. */
export function createServer(posthorn: Posthorn, settings: ServerSettings): Api {
  const timeouts = settings.timeouts ?? TIMEOUTS
  const bodyLimit = settings.maxPayloadBytes + ENVELOPE_BYTES
  const app: Api = fastify({
    ...connectionOptions(timeouts),
    loggerInstance: settings.logger as FastifyBaseLogger,
    logController: new RequestLog(posthorn.context.instruments),
    genReqId: requestId,
    bodyLimit,
    // Its own answer at that moment is not in our shape.
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: LONGEST_NAME,
      querystringParser: parseQuery,
    },
    // IdempotentResponses are made from what the schemas describe, and the tests hold them to it; V8 writes them as fast as generated code would.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
    frameworkErrors: (error, request, reply) => void handleError(error, request, reply),
  })
  app.setErrorHandler((error: Error, request, reply) => handleError(error, request, reply))
  sendRequestId(app)
  allowBrowsers(app)
  const isClosing = closeGracefully(app, settings.closeTimeoutMs)
  const admission = new Admission({
    maxRequests: settings.maxRequests,
    maxBodyBytes: settings.maxBodyBytes ?? Math.max(67_108_864, 4 * bodyLimit),
    handlerMs: timeouts.handlerMs,
  })
  registerAdmission(app, admission)
  answerNotFound(app)
  // Hooks run in the order in which they are added, and at the close the other way round: the Posthorn goes last.
  app.addHook("onClose", () => posthorn.close())
  refuseUnknownQueries(app)
  const identify = authenticate(app, posthorn, settings.readToken ?? null)
  refuseUnsupported(app)
  readBodies(app)
  loadCompiler(app)
  registerIdempotency(app, posthorn.context)
  const context: Context = {
    posthorn,
    publicUrl: settings.publicUrl ?? null,
    tenant(request) {
      const { run } = request
      return posthorn.tenant(requireCaller(request).orgId, run === null ? {} : { ids: run.ids })
    },
  }
  const routes = settings.routes ?? ROUTES
  if (routes.includes(messageRoutes)) {
    const answers = messageListener({
      posthorn,
      identify,
      admission,
      isClosing,
      bodyLimit,
      logger: settings.logger,
    })
    app.server.removeAllListeners("request").on("request", (request, response) => {
      if (!answers(request, response)) app.routing(request, response)
    })
  }
  void app.register(
    async (api) => {
      for (const register of routes) register(api as Api, context)
    },
    { prefix: PREFIX },
  )
  docsRoutes(app, async () => (await import("./openapi.ts")).describeApi(routes, context))
  return app
}

/** New requests are refused at once; connections that do not end by themselves are cut off. Returns whether the server is closing. */
function closeGracefully(app: Api, closeTimeoutMs: number): () => boolean {
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
    // Node counts a connection without a request yet as busy, until the time for its headers has passed.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroySoon()
    const deadline = setTimeout(() => app.server.closeAllConnections(), closeTimeoutMs)
    // One on which a request was under way would stay open until then, for the next that may come.
    const idle = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS)
    app.server.once("close", () => {
      clearTimeout(deadline)
      clearInterval(idle)
    })
  })
  return () => closing
}
