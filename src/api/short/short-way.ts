/**
 * The short way of a request that sends a message: past Node's HTTP server and the framework, which take more of the event loop's time
 * than all that Posthorn does for a message.
 *
 * It is no second server. A connection is read here for as long as each request on it comes in one piece or two, is written as most are,
 * bears a key that may send, and has a body that fits. The first that is anything else is given to the HTTP server, with its bytes and the
 * connection, for good: what is refused, unusual, slow or large is dealt with there, and in one way.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import type { Clerk } from "./clerk.ts"
import { Client, type Patience } from "./client.ts"

type OnConnection = (socket: Socket) => void

export class ShortWay {
  readonly #clerk: Clerk
  readonly #patience: Patience
  readonly #ordinary: OnConnection
  readonly #clients = new Set<Client>()
  #isStopping = false

  /** Puts itself between the server and those who connect to it. */
  constructor(server: Server, clerk: Clerk, patience: Patience) {
    this.#clerk = clerk
    this.#patience = patience
    const [ordinary, ...others] = server.listeners("connection") as OnConnection[]
    if (ordinary === undefined || others.length > 0)
      throw new Error("somebody else listens to the connections of the HTTP server")
    this.#ordinary = ordinary.bind(server)
    server.removeAllListeners("connection").on("connection", (socket) => this.#connected(socket))
  }

  #connected(socket: Socket): void {
    if (this.#isStopping) return this.#ordinary(socket)
    const client = new Client(socket, this.#clerk, this.#patience, {
      takeOver: () => this.#ordinary(socket),
      left: () => void this.#clients.delete(client),
    })
    this.#clients.add(client)
  }

  /** Whoever waits for nothing is sent away; the others with their answers, or when it has taken too long. */
  stop(withinMs: number): void {
    this.#isStopping = true
    for (const client of this.#clients) client.stop()
    const deadline = setTimeout(() => {
      for (const client of this.#clients) client.cut()
    }, withinMs)
    deadline.unref()
  }
}
