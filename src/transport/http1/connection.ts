/** One connection to a receiver, with one request at a time: HTTP/1.1 without pipelining. docs/http1.md describes the client. */
import type { Socket } from "node:net"
import type { Bytes } from "../../core/bytes.ts"
import { EndOfTick } from "../../end-of-tick.ts"
import type { AttemptPhase } from "../../observe/tracing.ts"
import { TransportError } from "../error.ts"
import type { OpenSocket } from "../socket.ts"
import { ResponseReader } from "./response.ts"

/** Up to this size, head and body are copied into one buffer: the copy costs less than a second write to the socket. */
const MOST_COPIED_BYTES = 65_536

const CLOSED = new TransportError("connection_reset", "the receiver closed the connection")
const NOT_NEEDED = new Error("the connection is not needed any more")

/** The caller of a request. */
export interface RequestOwner {
  /** Called once, at the end of the request, with what was read of the response, and with an error if the response is not complete. */
  ended(response: ResponseReader, error: Error | null): void
  reached(phase: AttemptPhase): void
  /** The request was moved to another connection. */
  moved(to: Connection): void
}

/** The pool of a connection. */
interface ConnectionOwner {
  /** The connection can take the next request. */
  freed(connection: Connection): void
  /** The connection is gone, whether it had a request in flight or not. */
  ended(connection: Connection): void
  /** Opens a fresh connection for a request whose connection ended. */
  another(): Connection
}

/** The bytes of a request. References are dropped as early as possible: hundreds of requests are in flight at once. */
interface RequestBytes {
  readonly head: string
  readonly body: Bytes
}

export class Connection {
  readonly #owner: ConnectionOwner
  #socket: Socket | null = null
  /** Of the request in flight. */
  #requestOwner: RequestOwner | null = null
  /** Null until the first byte of the response. */
  #response: ResponseReader | null = null
  /** The request, until the end of the event loop tick in which the connection is open. */
  #unsent: RequestBytes | null = null
  /** The request on a reused connection, until the first byte of its response. */
  #resendable: RequestBytes | null = null
  #isOver = false
  /** How long the receiver said that it keeps an idle connection. */
  keepAliveSeconds: number | null = null
  /** Set by the pool. */
  freeSince = 0

  constructor(open: OpenSocket, owner: ConnectionOwner) {
    this.#owner = owner
    open(
      (buffer, length) => this.#read(buffer, length),
      (phase) => this.#requestOwner?.reached(phase),
    ).then(
      (socket) => this.#opened(socket),
      (error) => this.#end(error),
    )
  }

  /** Empty before the connection is open, and after it was destroyed. */
  get peerAddress(): string {
    return this.#socket?.remoteAddress ?? ""
  }

  /** Only while no request is in flight. */
  request(head: string, body: Bytes, owner: RequestOwner): void {
    this.#requestOwner = owner
    this.#unsent = { head, body }
    if (this.#socket === null) return
    this.#resendable = this.#unsent
    UNWRITTEN.add(this)
  }

  /** Writes the request that `request` queued, unless it has ended meanwhile. */
  write(): void {
    const unsent = this.#unsent
    this.#unsent = null
    if (unsent !== null && this.#socket !== null) write(this.#socket, unsent)
  }

  /** Ends the request now. A connection that is still being opened goes on opening, for the next request. */
  cut(reason: Error): void {
    if (this.#socket === null) this.#endRequest(reason)
    else this.#end(reason)
  }

  #endRequest(error: Error | null): void {
    const owner = this.#requestOwner
    const response = this.#response
    this.#requestOwner = null
    this.#response = null
    this.#unsent = null
    this.#resendable = null
    owner?.ended(response ?? new ResponseReader(), error)
  }

  /** Only while no request is in flight. */
  close(): void {
    this.#end(NOT_NEEDED)
  }

  #opened(socket: Socket): void {
    this.#socket = socket
    socket
      .on("error", (error) => this.#receiverEnded(error))
      .on("end", () => this.#receiverEnded(CLOSED))
      .on("close", () => this.#receiverEnded(CLOSED))
    // A socket that was destroyed before these listeners were added emits nothing more.
    if (socket.destroyed) return this.#end(CLOSED)
    if (this.#unsent === null) this.#owner.freed(this)
    else UNWRITTEN.add(this)
  }

  #read(buffer: Buffer, length: number): void {
    if (this.#requestOwner === null || this.#unsent !== null)
      return this.#receiverEnded(new TransportError("invalid_response", "bytes without a request"))
    this.#resendable = null
    if (this.#response === null) {
      this.#response = new ResponseReader()
      this.#requestOwner.reached("first_byte")
    }
    try {
      if (this.#response.take(buffer, length)) this.#responded(this.#response)
    } catch (error) {
      this.#end(error as Error)
    }
  }

  #responded({ leavesConnection, head }: ResponseReader): void {
    // A receiver that responds before it has read the whole request may read the rest of it as the next request.
    if (!leavesConnection || this.#socket?.writableLength !== 0) return this.#end(null)
    this.keepAliveSeconds = head?.keepAliveSeconds ?? null
    this.#endRequest(null)
    this.#owner.freed(this)
  }

  /** A response that ends with the connection is complete, also when a receiver that left bytes unread ends it with a reset. */
  #receiverEnded(reason: Error): void {
    if (this.#resendable === null || this.#requestOwner === null)
      return this.#end(this.#response?.end() ? null : reason)
    this.#move(this.#resendable, this.#requestOwner)
  }

  /**
   * Many receivers close idle connections without notice (uvicorn after 5 s). A request that crosses such a close on the wire says nothing
   * about the receiver's health. The other connection is a fresh one, so a request moves at most once.
   */
  #move({ head, body }: RequestBytes, owner: RequestOwner): void {
    this.#requestOwner = null
    this.#end(null)
    const other = this.#owner.another()
    owner.moved(other)
    other.request(head, body, owner)
  }

  #end(error: Error | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#socket?.destroy()
    this.#owner.ended(this)
    this.#endRequest(error)
  }
}

const UNWRITTEN = new EndOfTick<Connection>((connection) => connection.write())

function write(socket: Socket, { head, body }: RequestBytes): void {
  // Node writes a short latin1 string without allocating a buffer for it.
  if (typeof body === "string") return void socket.write(head + body, "latin1")
  if (body.length > MOST_COPIED_BYTES) {
    socket.cork()
    socket.write(head, "latin1")
    socket.write(body)
    return socket.uncork()
  }
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, "latin1")
  bytes.set(body, head.length)
  socket.write(bytes)
}
