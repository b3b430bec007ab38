/** A TCP proxy on loopback that does to the connections through it what a bad network does. */
import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { Link, type Network, type Upstream } from "./fault-proxy-link.ts"

export class FaultProxy {
  readonly #upstream: Upstream
  readonly #server: Server
  readonly #links = new Set<Link>()
  readonly #network: Network = { latencyMs: 0, open: Promise.resolve(), trap: null }
  /** Set while it is a black hole. */
  #reopen: (() => void) | null = null
  #refuses = false

  private constructor(upstream: Upstream) {
    this.#upstream = upstream
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client))
  }

  static async start(upstream: Upstream): Promise<FaultProxy> {
    const proxy = new FaultProxy(upstream)
    await once(proxy.#server.listen(0, "127.0.0.1"), "listening")
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The URL of something on the upstream server, by way of the proxy. */
  through(url: string): string {
    const changed = new URL(url)
    changed.hostname = "127.0.0.1"
    changed.port = `${this.port}`
    return changed.href
  }

  /** Every byte takes this long, each way. */
  latency(ms: number): void {
    this.#network.latencyMs = ms
  }

  /**
   * Connections and bytes are accepted and get nowhere, and nothing is closed. What was held passes when it heals, as
   * TCP would send it again; `reset` first loses it.
   */
  blackHole(): void {
    if (this.#reopen !== null) return
    this.#network.open = new Promise((resolve) => {
      this.#reopen = resolve
    })
  }

  /** Cuts every connection. New ones are welcome. */
  reset(): void {
    for (const link of this.#links) link.reset()
  }

  /** New connections are cut at once. Old ones go on. */
  refuse(): void {
    this.#refuses = true
  }

  /**
   * The first bytes from a client that match (as they come, in pieces that the network makes) reach the server, and its reply is
   * lost. Resolves when the server has worked on all that it got and the connection is cut.
   */
  dropRepliesAfter(matches: (clientBytes: Buffer) => boolean): Promise<void> {
    return new Promise((sprung, failed) => {
      this.#network.trap = { matches, sprung, failed }
    })
  }

  heal(): void {
    this.#refuses = false
    this.#network.latencyMs = 0
    this.#network.trap = null
    this.#reopen?.()
    this.#reopen = null
  }

  async close(): Promise<void> {
    this.reset()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.#refuses) return void client.resetAndDestroy()
    const link = new Link(client, this.#upstream, this.#network, () => this.#links.delete(link))
    this.#links.add(link)
  }
}
