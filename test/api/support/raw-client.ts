/** A client that writes bytes as a test has them, and sees where each answer ends. */
import { once } from "node:events"
import type { Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { onTestFinished } from "vitest"

export interface RawAnswer {
  readonly status: number
  readonly reason: string
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

/** A client that writes what it is told to, in as many pieces, and reads answers one after the other. */
export class RawClient {
  readonly socket: Socket
  /** The server's end of it. */
  readonly peer: Promise<Socket>
  #written = 0
  #received = ""
  #hasEnded = false

  constructor(server: Server) {
    const { port } = server.address() as AddressInfo
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    this.peer = once(server, "connection").then(([peer]) => peer as Socket)
    this.socket.setNoDelay(true).setEncoding("latin1")
    this.socket.on("data", (text: string) => {
      this.#received += text
    })
    this.socket
      .on("error", () => {})
      .on("end", () => {
        this.#hasEnded = true
      })
    onTestFinished(() => void this.socket.destroy())
  }

  /** Each is read by itself: the next is written when it was. */
  async write(...pieces: readonly string[]): Promise<void> {
    const peer = await this.peer
    for (const piece of pieces) {
      this.socket.write(piece, "latin1")
      this.#written += piece.length
      await until(() => peer.bytesRead >= this.#written || peer.destroyed)
    }
  }

  async answer(): Promise<RawAnswer> {
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n")
      const [first = "", ...lines] = this.#received.slice(0, end).split("\r\n")
      const pairs = lines.map((line) => line.split(/: (.*)/s, 2) as [string, string])
      const headers = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
      const to = end + 4 + Number(headers["content-length"])
      if (end !== -1 && this.#received.length >= to) {
        const text = this.#received.slice(end + 4, to)
        this.#received = this.#received.slice(to)
        const [, status, ...reason] = first.split(" ")
        return { status: Number(status), reason: reason.join(" "), headers, text }
      }
      if (this.#hasEnded) throw new Error(`the server ended the connection after "${this.#received}"`)
      await Promise.race([once(this.socket, "data"), once(this.socket, "end")])
    }
  }

  /** The bytes after the last answer, when the server has closed the connection. */
  async rest(): Promise<string> {
    if (!this.#hasEnded) await once(this.socket, "end")
    return this.#received
  }
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
  // Everything that was read is worked on by then.
  await new Promise((resolve) => setImmediate(resolve))
}
