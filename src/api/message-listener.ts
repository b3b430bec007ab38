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
import type { Identify } from "./auth.ts"
import { readJson } from "./body.ts"
import type { Caller } from "./caller.ts"
import { PREFIX } from "./context.ts"
import { answerTo, logRefusal, type Requested } from "./errors.ts"
import { logged, requestId } from "./logging.ts"
import { inTime, type Places, type Slot } from "./overload.ts"
import { keyOf, postMessage, SENDING } from "./routes/messages.ts"
import { plain } from "./schema.ts"
import { MessageIn } from "./schemas/message.ts"
import { JSON_TYPE } from "./shapes.ts"
import { compilerLoading, validatorCompiler } from "./validation.ts"

interface Parts {
  readonly posthorn: Posthorn
  readonly identify: Identify
  readonly places: Places
  readonly logger: Logger
  readonly bodyLimit: number
  readonly isClosing: () => boolean
}

/** The state of a request: its response, caller and body as far as they are known. */
interface Known extends Requested {
  readonly params: { readonly app_id: string }
  body: MessageIn | undefined
  caller: Caller | null
  slot: Slot | null
}

const PATH = new RegExp(`^${PREFIX}/app/([\\w.-]{1,256})/msg$`)
const validate = validatorCompiler({ schema: plain(MessageIn) })
const JSON_BODY = /^application\/json(?:; ?charset=utf-8)?$/i

/** A client that reads one response of a tick is awake for the next: waking it took up to 20 µs of each write. */
const RESPONSES = new EndOfTick<() => void>((write) => write())

/** The listener returns false, and does nothing, for every request that Fastify has to answer. */
export function messageListener(parts: Parts) {
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const app = parts.isClosing() ? null : appOf(request, parts.bodyLimit)
    if (app === null) return false
    void answer(parts, request, response, app)
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
async function answer(parts: Parts, request: IncomingMessage, response: ServerResponse, app: string) {
  const startedAt = performance.now()
  const known: Known = {
    id: requestId(request),
    params: { app_id: app },
    query: {},
    body: undefined,
    caller: null,
    slot: null,
  }
  // Also emitted when the client goes away, even before its body has come.
  response.on("close", () => known.slot?.leave())
  const headers = ["x-request-id", known.id, "access-control-allow-origin", "*", "content-type", JSON_TYPE]
  let status = 202
  let body: string
  try {
    body = await post(parts, request, known)
  } catch (error) {
    const refusal = answerTo(error, known)
    logRefusal(error, refusal, parts.logger.child({ requestId: known.id }))
    status = refusal.status
    body = JSON.stringify(refusal.body)
    if (refusal.retryAfterSeconds !== null) headers.push("retry-after", `${refusal.retryAfterSeconds}`)
  }
  RESPONSES.add(() => {
    headers.push("content-length", `${Buffer.byteLength(body)}`)
    if (parts.isClosing()) headers.push("connection", "close")
    response.writeHead(status, headers).end(body)
    const { logger } = parts
    if (!logger.isLevelEnabled("info")) return
    const { method, url } = request
    const about = logged({ method, url, caller: known.caller }, status, performance.now() - startedAt)
    logger.info({ requestId: known.id, ...about }, "request")
  })
}

async function post(parts: Parts, request: IncomingMessage, known: Known): Promise<string> {
  const { places, identify, posthorn } = parts
  known.slot = places.take()
  const { authorization, "content-length": length } = request.headers
  const identified = identify(authorization)
  known.caller = identified instanceof Promise ? await inTime(known, identified) : identified
  requireScope(known.caller, "POST", SENDING)
  places.expectBody(known.slot, Number(length))
  const rawBody = await readBody(request)
  const loading = compilerLoading()
  if (loading !== undefined) await loading
  // Fastify too validates a missing body as null.
  const verdict = validate((readJson(rawBody) ?? null) as MessageIn)
  if ("error" in verdict) throw verdict.error
  const body = verdict.value as MessageIn
  known.body = body
  const posted = {
    app: known.params.app_id,
    body,
    rawBody,
    idempotencyKey: keyOf(request),
    withContent: true,
  }
  return inTime(known, postMessage(posthorn.tenant(known.caller.orgId), posted))
}

/** Never settles when the client goes away. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => resolve(Buffer.concat(chunks)))
  })
}
