/**
 * Answers `/in/TOKEN` straight from `node:http`: any method, path, query, content type and bytes, kept as they came. Fastify would parse
 * them. What can be refused without the body is refused before it is read.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { HeaderPair } from "../core/inbound-request.ts"
import { receivedRequest } from "../core/received-request.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import type { RequestFacts } from "../sources/activity-log.ts"
import { type Receipt, refused } from "../sources/receipt.ts"
import type { OpenSource } from "../sources/source-ring.ts"
import { SOURCE_PATH } from "../sources/source-token.ts"
import { type Admission, type RequestSlot, withTimeout } from "./admission.ts"
import { BodiesBySource } from "./bodies-by-source.ts"
import { ApiError } from "./errors.ts"
import { type BodyRead, readBody, respond } from "./inbound-body.ts"

interface ListenerDependencies {
  readonly posthorn: Posthorn
  readonly admission: Admission
  readonly logger: Logger
  /** From the request's headers to the end of its body. */
  readonly bodyMs: number
  readonly isClosing: () => boolean
}

interface Target {
  readonly token: string
  readonly path: string
  readonly query: string
}

interface RequestState {
  slot: RequestSlot | null
  source: OpenSource | null
}

/** The listener returns false, and does nothing, for every other path. */
export function inboundListener(listener: ListenerDependencies) {
  const { maxRequests, maxBodyBytes } = listener.admission.limits
  // The other half is for the API, however many requests the sources get.
  const reading = new BodiesBySource({ bodies: maxRequests / 2, bytes: maxBodyBytes / 2 })
  const dependencies = { ...listener, reading }
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const target = targetOf(request.url!)
    if (target === null) return false
    void answer(dependencies, request, response, target)
    return true
  }
}

function targetOf(url: string): Target | null {
  if (!url.startsWith(SOURCE_PATH)) return null
  const [, token = "", path = "", query = ""] =
    /^([^/?]*)(\/[^?]*)?(\?.*)?$/.exec(url.slice(SOURCE_PATH.length)) ?? []
  return { token, path, query }
}

/** Never rejects. */
async function answer(
  dependencies: ListenerDependencies & { readonly reading: BodiesBySource },
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
): Promise<void> {
  const { posthorn, logger, isClosing } = dependencies
  const { instruments, receiver } = posthorn.context
  const startedAt = performance.now()
  const measuredAt = instruments.now()
  const state: RequestState = { slot: null, source: null }
  const facts = factsOf(request, target)
  // Also emitted when the client goes away, even before its body has come.
  response.on("close", () => state.slot?.leave())
  const receipt = await receive(dependencies, request, target, facts, state).catch((error) => {
    // An overloaded server does not ask the store for the source.
    state.source ??= receiver.cached(target.token)
    return state.source === null
      ? refused("unavailable", error)
      : receiver.refuse(state.source, "unavailable", facts, codeOf(error), error)
  })
  // A client that goes on sending after its answer takes no slot from others.
  state.slot?.leave()
  // Node would wait for the rest of a slow body.
  respond(request, response, receipt, isClosing() || receipt.result === "refused_timeout")
  const { result, status, messageId, error } = receipt
  instruments.inboundAnswered(result, instruments.now() - measuredAt)
  // Not the URL: its token is a secret, and its query may have others.
  const about = {
    method: request.method,
    source: state.source?.id ?? null,
    status,
    result,
    messageId: messageId ?? undefined,
  }
  // The server's own refusals, such as an overload: their stack says nothing.
  if (error instanceof ApiError) logger.warn({ ...about, reason: error.message }, "a webhook was refused")
  else if (error !== null) logger.warn({ ...about, err: error }, "a webhook was refused")
  else logger.info({ ...about, durationMs: Math.round(performance.now() - startedAt) }, "webhook")
}

async function receive(
  {
    posthorn,
    admission,
    reading,
    bodyMs,
    isClosing,
  }: ListenerDependencies & { readonly reading: BodiesBySource },
  request: IncomingMessage,
  { token, query }: Target,
  facts: RequestFacts,
  state: RequestState,
): Promise<Receipt> {
  if (isClosing()) throw ApiError.of(503, "closing", "the server is stopping")
  const { receiver } = posthorn.context
  state.slot = admission.admit()
  const admitted = receiver.admit(token, declaredBytes(request) ?? 0, facts)
  const source = admitted instanceof Promise ? await withTimeout(state, admitted) : admitted
  if ("status" in source) return source
  state.source = source
  const mostBytes = receiver.mostBytes(source)
  const bytes = declaredBytes(request) ?? mostBytes
  if (!reading.begin(source.id, bytes))
    return receiver.refuse(source, "rate", facts, "too many bodies at once")
  let body: BodyRead
  try {
    state.slot.expectBody(bytes)
    body = await readBody(request, mostBytes, bodyMs)
  } finally {
    reading.end(source.id, bytes)
  }
  if (typeof body === "string") return receiver.refuse(source, body, facts)
  const { method, path, headers } = facts
  const received = receivedRequest({ method, path, query, headers, body })
  return withTimeout(state, receiver.takeIfOpen(token, received, facts))
}

function factsOf({ method, rawHeaders, socket }: IncomingMessage, { path }: Target): RequestFacts {
  const remoteAddress = socket.remoteAddress ?? null
  return { method: method!, path, headers: pairsOf(rawHeaders), remoteAddress }
}

/** Null for errors of the store. */
function codeOf(error: unknown): string | null {
  return error instanceof ApiError && "code" in error.body ? error.body.code : null
}

/** Null for a chunked body. */
function declaredBytes({ headers }: IncomingMessage): number | null {
  if (headers["transfer-encoding"] !== undefined) return null
  return Number(headers["content-length"] ?? 0)
}

/** With the case and the order of the names. */
function pairsOf(rawHeaders: readonly string[]): HeaderPair[] {
  const pairs: HeaderPair[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i]!, rawHeaders[i + 1]!])
  return pairs
}
