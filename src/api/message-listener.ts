/**
 * Answers `POST /app/{app_id}/msg` straight from `node:http`: Fastify's routing, hooks and objects took 8 to 12 µs of the event loop
 * for each message (docs/decisions/0017-messages-from-node-http.md). Admission, access, validation, sending and errors are the
 * functions that Fastify's routes go through, in the same order.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { EndOfTick } from "../end-of-tick.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import { requireScope } from "./access.ts"
import { type Admission, type RequestSlot, withTimeout } from "./admission.ts"
import type { Identify } from "./auth.ts"
import { readJson } from "./body.ts"
import type { Caller } from "./caller.ts"
import { PREFIX } from "./context.ts"
import { errorResponse, logFailure, type RequestParts } from "./errors.ts"
import { requestFields, requestId } from "./logging.ts"
import { serialize } from "./raw-json.ts"
import { jsonSchema } from "./schema.ts"
import { JSON_TYPE } from "./schemas/common.ts"
import { MessageIn } from "./schemas/message.ts"
import { idempotencyKeyOf, postMessage, SEND_ACCESS, traceOf } from "./send-message.ts"
import { compilerLoading, validatorCompiler } from "./validation.ts"

interface ListenerDependencies {
  readonly posthorn: Posthorn
  readonly identify: Identify
  readonly admission: Admission
  readonly logger: Logger
  readonly bodyLimit: number
  readonly isClosing: () => boolean
}

/** Filled in while the request is processed. */
interface RequestState extends RequestParts {
  readonly params: { readonly app_id: string }
  body: MessageIn | undefined
  caller: Caller | null
  slot: RequestSlot | null
}

/** As Fastify names it. */
const ROUTE = `${PREFIX}/app/:app_id/msg`
const PATH = new RegExp(`^${PREFIX}/app/([\\w.-]{1,256})/msg$`)
const validate = validatorCompiler({ schema: jsonSchema(MessageIn) })
const JSON_BODY = /^application\/json(?:; ?charset=utf-8)?$/i

/** A client that reads one response of a tick is awake for the next: waking it took up to 20 µs of each write. */
const RESPONSES = new EndOfTick<() => void>((write) => write())

/** The listener returns false, and does nothing, for every request that Fastify has to answer. */
export function messageListener(dependencies: ListenerDependencies) {
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const app = dependencies.isClosing() ? null : appOf(request, dependencies.bodyLimit)
    if (app === null) return false
    void answer(dependencies, request, response, app)
    return true
  }
}

/** Null for another route, and for a body that Fastify refuses, or that it has to read to learn its length. */
function appOf({ method, url, headers }: IncomingMessage, bodyLimit: number): string | null {
  if (method !== "POST") return null
  const app = PATH.exec(url!)?.[1]
  if (app === undefined || headers["content-encoding"] !== undefined) return null
  if (!JSON_BODY.test(headers["content-type"] ?? "")) return null
  return Number(headers["content-length"]) <= bodyLimit ? app : null
}

/** Never rejects. */
async function answer(
  dependencies: ListenerDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  app: string,
) {
  const startedAt = performance.now()
  const { instruments } = dependencies.posthorn.context
  const measuredAt = instruments.now()
  const state: RequestState = {
    id: requestId(request),
    params: { app_id: app },
    query: {},
    body: undefined,
    caller: null,
    slot: null,
  }
  // Also emitted when the client goes away, even before its body has come.
  response.on("close", () => state.slot?.leave())
  const headers = ["x-request-id", state.id, "access-control-allow-origin", "*", "cache-control", "no-store"]
  headers.push("content-type", JSON_TYPE)
  let status = 202
  let body: string
  try {
    body = await post(dependencies, request, state)
  } catch (error) {
    const refusal = errorResponse(error, state)
    logFailure(error, refusal, dependencies.logger.child({ requestId: state.id }))
    status = refusal.status
    body = JSON.stringify(refusal.body)
    if (refusal.retryAfterSeconds !== null) headers.push("retry-after", `${refusal.retryAfterSeconds}`)
  }
  RESPONSES.add(() => {
    headers.push("content-length", `${Buffer.byteLength(body)}`)
    if (dependencies.isClosing()) headers.push("connection", "close")
    response.writeHead(status, headers).end(body)
    const { logger } = dependencies
    instruments.requestAnswered("POST", ROUTE, status, instruments.now() - measuredAt)
    if (!logger.isLevelEnabled("info")) return
    const { method, url } = request
    const about = requestFields({ method, url, caller: state.caller }, status, performance.now() - startedAt)
    logger.info({ requestId: state.id, ...about }, "request")
  })
}

async function post(
  dependencies: ListenerDependencies,
  request: IncomingMessage,
  state: RequestState,
): Promise<string> {
  const { admission, identify, posthorn } = dependencies
  state.slot = admission.admit()
  const identified = identify(request.headers)
  state.caller = identified instanceof Promise ? await withTimeout(state, identified) : identified
  requireScope(state.caller, "POST", SEND_ACCESS)
  state.slot.expectBody(Number(request.headers["content-length"]))
  const rawBody = await readBody(request)
  const loading = compilerLoading()
  if (loading !== undefined) await loading
  // Fastify too validates a missing body as null.
  const validated = validate((readJson(rawBody) ?? null) as MessageIn)
  if ("error" in validated) throw validated.error
  const body = validated.value as MessageIn
  state.body = body
  const posted = {
    app: state.params.app_id,
    body,
    rawBody,
    idempotencyKey: idempotencyKeyOf(request),
    trace: traceOf(request),
    withContent: true,
  }
  return serialize(await withTimeout(state, postMessage(posthorn.tenant(state.caller.orgId), posted)))
}

/** Never settles when the client goes away. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => resolve(Buffer.concat(chunks)))
  })
}
