/** One connection through the fault proxy: two roads, and on each everything stays in order, the end too. */
import { connect, type Socket } from "node:net"
import { setTimeout as delay } from "node:timers/promises"

export interface Upstream {
  readonly host: string
  readonly port: number
}

interface Trap {
  matches(clientBytes: Buffer): boolean
  sprung(): void
  failed(error: Error): void
}

/** State that all connections share. */
export interface Network {
  latencyMs: number
  /** Nothing passes before this resolves. */
  open: Promise<void>
  trap: Trap | null
}

export class Link {
  readonly #client: Socket
  readonly #network: Network
  readonly #closed: () => void
  #server: Socket | null = null
  #toServer = Promise.resolve()
  #toClient = Promise.resolve()
  /** Set when a trap's match went to the server. */
  #trap: Trap | null = null
  #replied = false

  constructor(client: Socket, upstream: Upstream, network: Network, closed: () => void) {
    this.#client = client
    this.#network = network
    this.#closed = closed
    this.#toServer = this.#after(this.#toServer, () => this.#connect(upstream))
    const pass = (action: (server: Socket) => void) => {
      this.#toServer = this.#after(this.#toServer, () => {
        if (this.#server !== null && !this.#server.destroyed) action(this.#server)
      })
    }
    client.on("error", () => {})
    client.on("data", (bytes) => pass((server) => this.#forward(server, bytes)))
    client.on("end", () => pass((server) => server.end()))
    client.on("close", (hadError) => {
      if (hadError) pass((server) => server.resetAndDestroy())
      this.#forgetIfClosed()
    })
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.#server?.resetAndDestroy()
  }

  #connect(upstream: Upstream): void {
    if (this.#client.destroyed) return
    const server = connect({ ...upstream, allowHalfOpen: true, noDelay: true })
    this.#server = server
    const pass = (action: () => void) => {
      this.#toClient = this.#after(this.#toClient, () => {
        if (this.#trap === null && !this.#client.destroyed) action()
      })
    }
    server.on("error", () => {})
    server.on("data", (bytes) => (this.#trap === null ? pass(() => this.#client.write(bytes)) : this.#drop()))
    server.on("end", () => (this.#trap === null ? pass(() => this.#client.end()) : server.end()))
    server.on("close", (hadError) => {
      if (this.#trap !== null) this.#spring(this.#trap)
      else if (hadError) pass(() => this.#client.resetAndDestroy())
      this.#forgetIfClosed()
    })
  }

  #forward(server: Socket, bytes: Buffer): void {
    const { trap } = this.#network
    if (trap?.matches(bytes)) {
      this.#network.trap = null
      this.#trap = trap
    }
    server.write(bytes)
  }

  /** An end, not a reset: a server still reads everything that came before it, so what it got is surely done. */
  #drop(): void {
    this.#replied = true
    this.#server!.end()
  }

  #spring(trap: Trap): void {
    this.#client.resetAndDestroy()
    if (this.#replied) trap.sprung()
    else trap.failed(new Error("the server closed the connection without a reply"))
  }

  #forgetIfClosed(): void {
    if (this.#client.destroyed && (this.#server?.destroyed ?? true)) this.#closed()
  }

  async #after(previous: Promise<void>, action: () => void): Promise<void> {
    const { latencyMs } = this.#network
    await Promise.all([previous, latencyMs > 0 ? delay(latencyMs) : undefined])
    await this.#network.open
    action()
  }
}
