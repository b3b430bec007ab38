/** An HTTP client that is not the limit: sockets that write the same bytes again with another number in them, and read for the end. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { eventType } from "./library.ts"
import { bodyOf, writeOrdinal } from "./payload.ts"
import { CONNECTIONS } from "./settings.ts"

export interface Posts {
  readonly origin: string
  readonly path: string
  readonly key: string
  /** How many event types take turns. */
  readonly endpoints: number
}

const END_OF_HEAD = Buffer.from("\r\n\r\n")
const LENGTH = Buffer.from("content-length: ")
const ACCEPTED = "HTTP/1.1 202"
const NOTHING = Buffer.alloc(0)

/** 64 connections, each with one request under way. */
export class RawClient {
  readonly #connections: readonly Connection[]

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections
  }

  static async open(posts: Posts): Promise<RawClient> {
    const connections = Array.from({ length: CONNECTIONS }, () => Connection.open(posts))
    return new RawClient(await Promise.all(connections))
  }

  /** Posts messages with the numbers from `from` on; resolves when all are accepted. */
  async post(from: number, count: number): Promise<void> {
    let next = from
    const poster = async (connection: Connection) => {
      while (next < from + count) await connection.post(next++)
    }
    await Promise.all(this.#connections.map(poster))
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

class Connection {
  readonly #socket: Socket
  readonly #request: Buffer
  readonly #payloadAt: number
  readonly #typeAt: number
  readonly #endpoints: number
  #received: Buffer = NOTHING
  #accepted: () => void = () => {}
  #failed: (error: Error) => void = () => {}

  private constructor(socket: Socket, { path, key, endpoints, origin }: Posts) {
    this.#socket = socket
    this.#endpoints = endpoints
    const opening = `{"eventType":"${eventType(0)}","payload":`
    const bodyBytes = opening.length + bodyOf(0).length + 1
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${new URL(origin).host}`,
      `authorization: Bearer ${key}`,
      "content-type: application/json",
      `content-length: ${bodyBytes}`,
    ]
    const before = `${head.join("\r\n")}\r\n\r\n${opening}`
    this.#request = Buffer.concat([Buffer.from(before), bodyOf(0), Buffer.from("}")])
    this.#payloadAt = before.length
    this.#typeAt = before.indexOf(eventType(0))
    socket.on("data", (chunk) => this.#read(chunk))
    socket.on("error", (error) => this.#failed(error))
    socket.on("close", () => this.#failed(new Error("the server closed a connection")))
  }

  static async open(posts: Posts): Promise<Connection> {
    const { hostname, port } = new URL(posts.origin)
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, "connect")
    return new Connection(socket, posts)
  }

  post(ordinal: number): Promise<void> {
    writeOrdinal(this.#request, ordinal, this.#payloadAt)
    this.#request.write(eventType(ordinal % this.#endpoints), this.#typeAt)
    return new Promise((resolve, reject) => {
      this.#accepted = resolve
      this.#failed = reject
      this.#socket.write(this.#request)
    })
  }

  #read(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const head = this.#received.indexOf(END_OF_HEAD)
    if (head === -1) return
    const at = this.#received.indexOf(LENGTH) + LENGTH.length
    const length = Number(this.#received.toString("latin1", at, this.#received.indexOf(13, at)))
    if (this.#received.length < head + END_OF_HEAD.length + length) return
    const answer = this.#received
    this.#received = NOTHING
    if (answer.toString("latin1", 0, ACCEPTED.length) === ACCEPTED) this.#accepted()
    else this.#failed(new Error(`the server answered ${answer}`))
  }

  close(): void {
    this.#failed = () => {}
    this.#socket.destroy()
  }
}
