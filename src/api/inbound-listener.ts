/**
 * Answers `/in/TOKEN` straight from `node:http`: any method, path, query, content type and bytes, kept as they came. Fastify would parse
 * them. What can be refused without the body is refused before it is read.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { HeaderPair } from "../core/inbound-request.ts"
import { receivedRequest } from "../core/received-request.ts"
import type { Logger } from "../observe/log.ts"
import type { Posthorn } from "../posthorn.ts"
import { type Receipt, refused } from "../sources/receipt.ts"
import { SOURCE_PATH } from "../sources/source-token.ts"
import { type Admission, type RequestSlot, withTimeout } from "./admission.ts"
import { BodiesBySource } from "./bodies-by-source.ts"
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
  sourceId: string | null
}

/** The listener returns false, and does nothing, for every other path. */
export function inboundListener(listener: ListenerDependencies) {
  const dependencies = { ...listener, reading: new BodiesBySource() }
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
  const { instruments } = posthorn.context
  const startedAt = performance.now()
  const measuredAt = instruments.now()
  const state: RequestState = { slot: null, sourceId: null }
  // Also emitted when the client goes away, even before its body has come.
  response.on("close", () => state.slot?.leave())
  const receipt = await receive(dependencies, request, target, state).catch((error) =>
    refused("unavailable", error),
  )
  // A client that goes on sending after its answer takes no slot from others.
  state.slot?.leave()
  // Node would wait for the rest of a slow body.
  respond(request, response, receipt, isClosing() || receipt.result === "refused_timeout")
  const { result, status, messageId, error } = receipt
  instruments.inboundAnswered(result, instruments.now() - measuredAt)
  // Not the URL: its token is a secret, and its query may have others.
  const about = {
    method: request.method,
    source: state.sourceId,
    status,
    result,
    messageId: messageId ?? undefined,
  }
  if (error !== null) logger.warn({ ...about, err: error }, "a webhook was refused")
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
  { token, path, query }: Target,
  state: RequestState,
): Promise<Receipt> {
  if (isClosing()) return refused("unavailable")
  const { receiver } = posthorn.context
  state.slot = admission.admit()
  const [method, headers] = [request.method!, pairsOf(request.rawHeaders)]
  const facts = { method, path, headers, remoteAddress: request.socket.remoteAddress ?? null }
  const admitted = receiver.admit(token, declaredBytes(request) ?? 0, facts)
  const source = admitted instanceof Promise ? await withTimeout(state, admitted) : admitted
  if ("status" in source) return source
  state.sourceId = source.id
  const mostBytes = receiver.mostBytes(source)
  const bytes = declaredBytes(request) ?? mostBytes
  if (!reading.begin(source.id, bytes))
    return receiver.refuse(source, "rate", facts, "too many bodies at once")
  let body: BodyRead
  try {
    admission.expectBody(state.slot, bytes)
    body = await readBody(request, mostBytes, bodyMs)
  } finally {
    reading.end(source.id, bytes)
  }
  if (typeof body === "string") return receiver.refuse(source, body, facts)
  // It may have been changed, disabled or deleted while the body came.
  const latest = await receiver.find(token)
  if (latest === null || !latest.record.enabled) return refused("unknown")
  const received = receivedRequest({ method, path, query, headers, body })
  return withTimeout(state, receiver.take(latest, received, facts))
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
