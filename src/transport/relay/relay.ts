/** The transport for `relay://NAME`: requests go to the agent of that name, over the connection that it opened. */
import { isUtf8 } from "node:buffer"
import { agentNameOf, RELAY_SCHEME } from "../../core/agent-url.ts"
import { type Bytes, toBuffer } from "../../core/bytes.ts"
import { type HeaderPair, type InboundRequest, readInbound } from "../../core/inbound-request.ts"
import { CLOSE, type EncodedBody } from "../../core/relay-protocol.ts"
import { INTERRUPTED, withoutResponse } from "../result.ts"
import type {
  EndpointAddress,
  OutboundRequest,
  Reach,
  SchemeTransport,
  TransportResult,
  WebhookHead,
} from "../transport.ts"
import type { AgentSession, NewEvent } from "./agent-session.ts"

export class RelayTransport implements SchemeTransport {
  readonly schemes = [RELAY_SCHEME]
  readonly isBound = true
  /** By endpoint. */
  readonly #sessions = new Map<string, AgentSession>()
  /** Also those that get no more events, and have some in flight. */
  readonly #open = new Set<AgentSession>()

  async urlProblem(url: string): Promise<string | null> {
    if (agentNameOf(url) !== null) return null
    return "must be relay://NAME with a NAME of 1 to 63 of the characters a-z 0-9 -, and nothing behind it"
  }

  reachOf({ id }: EndpointAddress): () => Reach {
    return () => this.#sessions.get(id)?.reach ?? "absent"
  }

  /** The endpoint's requests go over this connection from now on. */
  bind(endpointId: string, session: AgentSession): void {
    this.#open.add(session)
    this.#sessions.set(endpointId, session)
  }

  /** The connection has ended. */
  ended(session: AgentSession): void {
    this.#open.delete(session)
  }

  unbind(endpointId: string): void {
    this.#sessions.delete(endpointId)
  }

  sessionOf(endpointId: string): AgentSession | undefined {
    return this.#sessions.get(endpointId)
  }

  /** The endpoints with a connection in this process. */
  get endpoints(): readonly string[] {
    return [...this.#sessions.keys()]
  }

  async send(request: OutboundRequest): Promise<TransportResult> {
    const { endpointId, webhook, timeoutMs } = request
    const session = this.#sessions.get(endpointId)
    if (session === undefined || webhook === undefined)
      return withoutResponse({ kind: "interrupted" }, "the agent is not connected")
    return session.deliver(eventOf(request, webhook), timeoutMs)
  }

  forget(): void {}

  interrupt(): number {
    return [...this.#open].reduce((events, session) => events + session.interrupt(), 0)
  }

  async close(): Promise<void> {
    for (const session of [...this.#open]) session.end(CLOSE.goingAway, INTERRUPTED.message)
  }
}

function eventOf(request: OutboundRequest, webhook: WebhookHead): NewEvent {
  const { delivery } = webhook
  const inbound = delivery.inbound === null ? null : readInbound(delivery.inbound)
  const origin = inbound ?? { method: "POST", path: "", query: "", sourceId: null }
  return {
    ...encoded(request.body),
    id: delivery.id,
    attempt: delivery.attemptCount + 1,
    manual: delivery.manual,
    messageId: webhook.messageId,
    eventType: delivery.eventType,
    endpointId: request.endpointId,
    sourceId: origin.sourceId,
    receivedAt: new Date(delivery.receivedAt).toISOString(),
    method: origin.method,
    path: origin.path,
    query: origin.query,
    headers: inbound === null ? ownHeaders(request, webhook) : asTheyCame(inbound, request.headers),
    traceparent: webhook.traceparent,
  }
}

function encoded(body: Bytes): EncodedBody {
  if (typeof body === "string") return { body }
  const bytes = toBuffer(body)
  return isUtf8(bytes) ? { body: bytes.toString("utf8") } : { base64: bytes.toString("base64") }
}

/** The headers that an HTTP endpoint would get. */
function ownHeaders({ headers }: OutboundRequest, webhook: WebhookHead): HeaderPair[] {
  const { messageId: id, timestampSeconds, signature, contentType, authorization } = webhook
  const signed = (prefix: string): HeaderPair[] => [
    [`${prefix}-id`, id],
    [`${prefix}-timestamp`, `${timestampSeconds}`],
    [`${prefix}-signature`, signature],
  ]
  return [
    ...Object.entries(headers),
    ["content-type", contentType],
    ["idempotency-key", id],
    ...signed("webhook"),
    ...signed("svix"),
    ...(authorization === null ? [] : [["authorization", authorization] as const]),
  ]
}

/** The endpoint's own headers replace those of the same name. */
function asTheyCame({ headers }: InboundRequest, own: OutboundRequest["headers"]): HeaderPair[] {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()))
  return [...headers.filter(([name]) => !names.has(name.toLowerCase())), ...Object.entries(own)]
}
