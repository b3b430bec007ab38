/** A receiver on any loopback address, over HTTP or TLS, that keeps what came, how it was addressed, and over which connection. */
import { once } from "node:events"
import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http"
import { createServer as createHttpsServer, type ServerOptions } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { onTestFinished } from "vitest"
import { Canary, OPEN } from "./canary.ts"

export interface Visit {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The name in SNI. */
  readonly servername: string | null
  readonly localAddress: string
  /** The common name of the client's certificate. */
  readonly client: string | null
}

export type SiteAnswer = (visit: Visit, response: ServerResponse) => void

export interface SiteOptions {
  readonly host?: string
  readonly tls?: ServerOptions
}

export class Site {
  readonly visits: Visit[] = []
  connections = 0
  answer: SiteAnswer = (_visit, response) => void response.end("ok")
  readonly #server: Server
  readonly #host: string
  readonly #scheme: string
  readonly #watchers = new Set<() => void>()

  private constructor({ host = OPEN, tls }: SiteOptions) {
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = []
      request.on("data", (chunk) => chunks.push(chunk))
      request.on("end", () => {
        const visit = {
          path: request.url ?? "/",
          headers: request.headers,
          body: Buffer.concat(chunks).toString("utf8"),
          ...aboutSocket(request.socket),
        }
        this.visits.push(visit)
        this.answer(visit, response)
        for (const watcher of this.#watchers) watcher()
      })
    }
    this.#host = host
    this.#scheme = tls === undefined ? "http" : "https"
    this.#server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener)
    this.#server.keepAliveTimeout = 0
    this.#server.on("connection", () => this.connections++).on("tlsClientError", () => {})
  }

  static async start(options: SiteOptions = {}): Promise<Site> {
    const site = new Site(options)
    await once(site.#server.listen(0, site.#host), "listening")
    onTestFinished(() => {
      site.#server.closeAllConnections()
      site.#server.close()
    })
    return site
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  url(path = "/", host = this.#host): string {
    return `${this.#scheme}://${host}:${this.port}${path}`
  }

  /** Resolves when so many requests have come. */
  async visited(count: number): Promise<Visit[]> {
    await new Promise<void>((resolve) => {
      const check = () => {
        if (this.visits.length < count) return
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
    return this.visits
  }
}

function aboutSocket(socket: Socket): Pick<Visit, "servername" | "localAddress" | "client"> {
  const secure = socket as Partial<TLSSocket>
  return {
    servername: (secure.servername as string | false | undefined) || null,
    localAddress: socket.localAddress ?? "",
    client: (secure.getPeerCertificate?.()?.subject?.CN as string | undefined) ?? null,
  }
}

/** A receiver, and at the same port of a closed address a canary; the port has to be free on both. */
export async function siteBesideCanary(options: SiteOptions = {}): Promise<Site> {
  for (;;) {
    const site = await Site.start(options)
    try {
      await Canary.beside(site.port)
      return site
    } catch (error) {
      if ((error as { code?: string }).code !== "EADDRINUSE") throw error
    }
  }
}
