/** Chooses the transport by the scheme of the URL. `posthorn.ts` registers the transports. */
import { fullAddress } from "../core/input.ts"
import { transportOf } from "../core/transport-kind.ts"
import type { AttemptSpan } from "../observe/tracing.ts"
import { forbidden } from "./result.ts"
import type {
  EndpointAddress,
  OutboundRequest,
  Reach,
  SchemeTransport,
  Transport,
  TransportResult,
} from "./transport.ts"

export class TransportRouter implements Transport {
  /** The schemes that a caller's URL may have: those of all transports that are not internal. */
  readonly schemes: readonly string[]
  /** Of all transports that are not bound to a process, as `transportOf` names them: the lanes that any worker with this router can serve. */
  readonly kinds: readonly string[]
  readonly #transports: readonly SchemeTransport[]
  readonly #byScheme: ReadonlyMap<string, SchemeTransport>

  constructor(transports: readonly SchemeTransport[]) {
    this.#transports = transports
    this.#byScheme = new Map(
      transports.flatMap((transport) => transport.schemes.map((scheme) => [scheme, transport] as const)),
    )
    this.schemes = transports.filter(({ isInternal }) => !isInternal).flatMap(({ schemes }) => schemes)
    const unbound = transports.filter(({ isBound }) => !isBound).flatMap(({ schemes }) => schemes)
    this.kinds = [...new Set(unbound.map(transportOf))]
  }

  /** Why requests cannot go to this URL, as a sentence that follows the name of the field, or null. */
  async urlProblem(url: string): Promise<string | null> {
    const transport = this.#transportFor(url)
    if (transport === undefined || transport.isInternal) return fullAddress(this.schemes)
    return transport.urlProblem(url)
  }

  send(request: OutboundRequest, span?: AttemptSpan | null): Promise<TransportResult> {
    return this.#transportFor(request.url)?.send(request, span) ?? Promise.resolve(forbidden(request.url))
  }

  reachOf(endpoint: EndpointAddress): (() => Reach) | null {
    return this.#transportFor(endpoint.url)?.reachOf(endpoint) ?? null
  }

  /** All transports: an endpoint whose URL changed may have connections of its former scheme. */
  forget(endpointId: string): void {
    for (const transport of this.#transports) transport.forget(endpointId)
  }

  interrupt(): number {
    return this.#transports.reduce((requests, transport) => requests + transport.interrupt(), 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.#transports.map((transport) => transport.close()))
  }

  #transportFor(url: string): SchemeTransport | undefined {
    // Stored URLs are normalised. Only a URL that an operator wrote into the database by hand has to be parsed.
    const scheme = url.slice(0, url.indexOf(":") + 1)
    return this.#byScheme.get(scheme) ?? this.#byScheme.get(URL.parse(url)?.protocol ?? "")
  }
}
