/** A fast HTTP client: its sockets write a prepared request with another number, and search responses only for their end. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { CONNECTIONS } from "./settings.ts"

/** A prepared request. */
export interface Prepared {
  readonly origin: string
  readonly request: Buffer
  /** Writes a message's number into the request. */
  write(request: Buffer, ordinal: number): void
}

const END_OF_HEAD = Buffer.from("\r\n\r\n")
const LENGTH = Buffer.from("content-length: ")
const SUCCESS = "HTTP/1.1 2"
const NOTHING = Buffer.alloc(0)

/** 64 connections, each with one request in flight. */
export class RawClient {
  readonly #connections: readonly Connection[]
  readonly #free: Connection[]
  readonly #waiting: ((connection: Connection) => void)[] = []

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections
    this.#free = [...connections]
  }

  static async open(prepared: Prepared): Promise<RawClient> {
    const connections = Array.from({ length: CONNECTIONS }, () => Connection.open(prepared))
    return new RawClient(await Promise.all(connections))
  }

  /** Posts messages with numbers from `from` on. Resolves when all responses are successful. */
  async post(from: number, count: number): Promise<void> {
    let next = from
    const poster = async (connection: Connection) => {
      while (next < from + count) await connection.post(next++)
    }
    await Promise.all(this.#connections.map(poster))
  }

  /** For an open loop: on a connection that is free, or as soon as one is. Not while `post` runs. */
  async postOne(ordinal: number): Promise<void> {
    const connection = this.#free.pop() ?? (await new Promise<Connection>((take) => this.#waiting.push(take)))
    try {
      await connection.post(ordinal)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free.push(connection)
      else next(connection)
    }
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

class Connection {
  readonly #socket: Socket
  readonly #request: Buffer
  readonly #write: Prepared["write"]
  #received: Buffer = NOTHING
  #accepted: () => void = () => {}
  #failed: (error: Error) => void = () => {}

  private constructor(socket: Socket, { request, write }: Prepared) {
    this.#socket = socket
    this.#request = Buffer.from(request)
    this.#write = write
    socket.on("data", (chunk) => this.#read(chunk))
    socket.on("error", (error) => this.#failed(error))
    socket.on("close", () => this.#failed(new Error("the server closed a connection")))
  }

  static async open(prepared: Prepared): Promise<Connection> {
    const { hostname, port } = new URL(prepared.origin)
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, "connect")
    return new Connection(socket, prepared)
  }

  post(ordinal: number): Promise<void> {
    this.#write(this.#request, ordinal)
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
    if (answer.toString("latin1", 0, SUCCESS.length) === SUCCESS) this.#accepted()
    else this.#failed(new Error(`the server answered ${answer}`))
  }

  close(): void {
    this.#failed = () => {}
    this.#socket.destroy()
  }
}
