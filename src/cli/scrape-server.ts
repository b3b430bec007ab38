/** `/metrics` and `/healthz` of `serve` and `worker`, on an address of their own. */
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { hostAndPort } from "../config/kinds.ts"
import type { Logger } from "../observe/log.ts"
import { expose } from "../observe/metrics/exposition.ts"
import type { Posthorn } from "../posthorn.ts"
import { sharedHealth } from "../shared-health.ts"

const CONNECTIONS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
}
/** Scrapers are few. A connection beyond the limit is closed at once. */
const MOST_CONNECTIONS = 100
/** A store that hangs must not make the check hang. */
const HEALTH_MS = 5000
const TEXT = "text/plain; charset=utf-8"

interface Answer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

export class ScrapeServer {
  readonly #posthorn: Posthorn
  readonly #logger: Logger
  readonly #server: Server
  readonly #health: () => ReturnType<Posthorn["health"]>
  #isStopping = false

  private constructor(posthorn: Posthorn, logger: Logger) {
    this.#posthorn = posthorn
    this.#logger = logger
    this.#health = sharedHealth(posthorn)
    this.#server = createServer(CONNECTIONS, (request, response) => void this.#respond(request, response))
    this.#server.maxConnections = MOST_CONNECTIONS
  }

  static async start(posthorn: Posthorn, host: string, port: number, logger: Logger): Promise<ScrapeServer> {
    const listener = new ScrapeServer(posthorn, logger)
    const server = listener.#server.listen(port, host)
    await once(server, "listening")
    // An error of a listening socket, such as no more file descriptors, must not end the process.
    server.on("error", (err) => logger.warn({ err }, "The listener for metrics has an error"))
    return listener
  }

  /** As it is typed into a browser. */
  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo
    return `http://${hostAndPort(address, port)}`
  }

  /** From now on `/healthz` says that the process stops. */
  stopping(): void {
    this.#isStopping = true
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, contentType, text } = await this.#answer(request).catch((err): Answer => {
      this.#logger.error({ err }, "Metrics could not be written")
      return {
        status: 500,
        contentType: TEXT,
        text: "The metrics could not be written; the log has the error.\n",
      }
    })
    response.writeHead(status, {
      "content-type": contentType,
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
      ...(status === 405 ? { allow: "GET, HEAD" } : {}),
    })
    response.end(request.method === "HEAD" ? undefined : text)
  }

  async #answer({ method, url = "", headers }: IncomingMessage): Promise<Answer> {
    const path = url.split("?", 1)[0]
    if (path !== "/metrics" && path !== "/healthz")
      return { status: 404, contentType: TEXT, text: "There are only /metrics and /healthz here.\n" }
    if (method !== "GET" && method !== "HEAD")
      return { status: 405, contentType: TEXT, text: "Only GET and HEAD are answered here.\n" }
    if (path === "/healthz") return this.#healthz()
    return { status: 200, ...(await expose(this.#posthorn.registry!, headers.accept)) }
  }

  async #healthz(): Promise<Answer> {
    const { ready, problem } = this.#isStopping
      ? { ready: false, problem: "The process is stopping" }
      : await Promise.race([this.#health(), slow()])
    return { status: ready ? 200 : 503, contentType: TEXT, text: `${problem ?? "ok"}\n` }
  }
}

function slow(): ReturnType<Posthorn["health"]> {
  const problem = `The store has not answered within ${HEALTH_MS / 1000} s`
  return new Promise((resolve) => setTimeout(resolve, HEALTH_MS, { ready: false, problem }).unref())
}
