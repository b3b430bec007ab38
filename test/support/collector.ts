/** A real OTLP receiver on loopback: it keeps the spans that arrive as JSON, and every request. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

export interface CollectedSpan {
  readonly name: string
  /** 3 is CLIENT, 4 is PRODUCER. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly attributes: { readonly [name: string]: string | number }
  readonly events: readonly string[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  /** 2 is ERROR. */
  readonly status: number
  readonly resource: { readonly [name: string]: string | number }
}

interface Request {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export class Collector {
  readonly requests: Request[] = []
  readonly url: string
  readonly #watchers = new Set<() => void>()

  private constructor(url: string) {
    this.url = url
  }

  static async start(): Promise<Collector> {
    let collector: Collector | null = null
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
        collector!.#take({ path: request.url!, headers: request.headers, body: Buffer.concat(chunks) })
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    collector = new Collector(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return collector
  }

  #take(request: Request): void {
    this.requests.push(request)
    for (const watcher of this.#watchers) watcher()
  }

  /** Resolves when this number of requests has come. */
  requested(count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.requests.length < count) return
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
  }

  get spans(): CollectedSpan[] {
    return this.requests.flatMap(({ body }) => spansOf(JSON.parse(body.toString())))
  }

  /** Resolves with all spans when there are as many of this name. */
  async collected(name: string, count: number): Promise<CollectedSpan[]> {
    while (this.spans.filter((span) => span.name === name).length < count)
      await this.requested(this.requests.length + 1)
    return this.spans
  }
}

interface KeyValue {
  readonly key: string
  readonly value: { readonly [kind: string]: string | number }
}

// biome-ignore lint/suspicious/noExplicitAny: OTLP's JSON, whose shape the tests check
function spansOf(document: any): CollectedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return document.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: as above
      spans.map((span: any) => ({
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? "",
        attributes: valuesOf(span.attributes),
        events: (span.events ?? []).map(({ name }: { name: string }) => name),
        links: (span.links ?? []).map(({ traceId, spanId }: CollectedSpan) => ({ traceId, spanId })),
        status: span.status?.code ?? 0,
        resource: valuesOf(resource.attributes),
      })),
    ),
  )
}

function valuesOf(pairs: readonly KeyValue[]): CollectedSpan["attributes"] {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]!]))
}
