/**
 * The short way of a request that sends a message: past Node's HTTP server and the framework, which take more of the event loop's time
 * than all that Posthorn does for a message.
 *
 * It is no second server. A connection is read here for as long as each request on it sends a message, is written as most are, and comes in
 * one piece or two. The first that is anything else is given to the HTTP server, with its bytes and the connection, for good: what is
 * unusual, slow or large is dealt with there.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import type { Clerk } from "./clerk.ts"
import { Client, type Limits } from "./client.ts"

type OnConnection = (socket: Socket) => void

export class ShortWay {
  readonly #clerk: Clerk
  readonly #limits: Limits
  readonly #ordinary: OnConnection
  readonly #clients = new Set<Client>()
  #isStopping = false

  /** Puts itself between the server and those who connect to it. */
  constructor(server: Server, clerk: Clerk, limits: Limits) {
    this.#clerk = clerk
    this.#limits = limits
    const [ordinary, ...others] = server.listeners("connection") as OnConnection[]
    if (ordinary === undefined || others.length > 0)
      throw new Error("somebody else listens to the connections of the HTTP server")
    this.#ordinary = ordinary.bind(server)
    server.removeAllListeners("connection").on("connection", (socket) => this.#connected(socket))
  }

  #connected(socket: Socket): void {
    if (this.#isStopping) return this.#ordinary(socket)
    const client = new Client(socket, this.#clerk, this.#limits, {
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
