/** One connection to a receiver, for one request at a time. HTTP/1.1 without pipelining; see decision 0011 for why it is our own. */
import type { Socket } from "node:net"
import type { Bytes } from "../../core/bytes.ts"
import { EndOfTick as EndOfTurn } from "../../end-of-tick.ts"
import { AnswerReader } from "./answer.ts"
import type { Open } from "./connect.ts"
import { EgressError } from "./guard.ts"

/** Up to so much, head and body are written as one piece: a copy costs less than a second buffer on its way to the socket. */
const MOST_COPIED_BYTES = 65_536

const CLOSED = new EgressError("connection_reset", "the receiver closed the connection")
const NOT_NEEDED = new Error("the connection is not needed any more")

/** Whose request it is. */
export interface Asker {
  /** Told once, when the request is over: with what came of the answer, and with an error if that is not all. */
  ended(answer: AnswerReader, error: Error | null): void
  /** The request is on this connection from now on. */
  moved(to: Connection): void
}

/** What a connection tells its pool. */
interface Owner {
  /** Free for the next request. */
  freed(connection: Connection): void
  /** Of no use any more, whether a request was under way or not. */
  ended(connection: Connection): void
  /** Opens a connection for the request that was on one that ended. */
  another(): Connection
}

/** What is written of a request: let go as soon as possible, since many are under way at once. */
interface Written {
  readonly head: string
  readonly body: Bytes
}

export class Connection {
  readonly #owner: Owner
  #socket: Socket | null = null
  /** Whose request is under way. */
  #asker: Asker | null = null
  /** What came of its answer; null until something has. */
  #answer: AnswerReader | null = null
  /** Of the request, while the connection is being opened, and until the end of the turn. */
  #unsent: Written | null = null
  /** Of a request on a reused connection, until the first byte of its answer. */
  #resendable: Written | null = null
  #isOver = false
  /** How long the receiver said that it keeps an idle connection. */
  keepAliveSeconds: number | null = null
  /** Kept by the pool: when it was last free. */
  freeSince = 0

  constructor(open: Open, owner: Owner) {
    this.#owner = owner
    open((bytes, length) => this.#take(bytes, length)).then(
      (socket) => this.#opened(socket),
      (error) => this.#end(error),
    )
  }

  /** Only while none is under way. */
  request(head: string, body: Bytes, asker: Asker): void {
    this.#asker = asker
    this.#unsent = { head, body }
    if (this.#socket === null) return
    this.#resendable = this.#unsent
    UNWRITTEN.add(this)
  }

  /** The request that waits to be written, if it still does. */
  write(): void {
    const unsent = this.#unsent
    this.#unsent = null
    if (unsent !== null && this.#socket !== null) write(this.#socket, unsent)
  }

  /** Ends the request now. A connection that is still being opened is left to it: the next request can have it. */
  cut(reason: Error): void {
    if (this.#socket === null) this.#tell(reason)
    else this.#end(reason)
  }

  #tell(error: Error | null): void {
    const asker = this.#asker
    const answer = this.#answer
    this.#asker = null
    this.#answer = null
    this.#unsent = null
    this.#resendable = null
    asker?.ended(answer ?? new AnswerReader(), error)
  }

  /** When no request is under way. */
  close(): void {
    this.#end(NOT_NEEDED)
  }

  #opened(socket: Socket): void {
    this.#socket = socket
    socket
      .on("error", (error) => this.#receiverEnded(error))
      .on("end", () => this.#receiverEnded(CLOSED))
      .on("close", () => this.#receiverEnded(CLOSED))
    // Nothing will tell of an end that came before this.
    if (socket.destroyed) return this.#end(CLOSED)
    if (this.#unsent === null) this.#owner.freed(this)
    else UNWRITTEN.add(this)
  }

  #take(bytes: Buffer, length: number): void {
    if (this.#asker === null || this.#unsent !== null)
      return this.#receiverEnded(new EgressError("invalid_response", "bytes that nobody asked for"))
    this.#resendable = null
    this.#answer ??= new AnswerReader()
    try {
      if (this.#answer.take(bytes, length)) this.#answered(this.#answer)
    } catch (error) {
      this.#end(error as Error)
    }
  }

  #answered({ leavesConnection, head }: AnswerReader): void {
    // One that answers before it has read everything may read the rest as the next request.
    if (!leavesConnection || this.#socket?.writableLength !== 0) return this.#end(null)
    this.keepAliveSeconds = head?.keepAliveSeconds ?? null
    this.#tell(null)
    this.#owner.freed(this)
  }

  /** A body that ends with the connection has come, also where a receiver that left bytes unread ends it with a reset. */
  #receiverEnded(reason: Error): void {
    if (this.#resendable === null || this.#asker === null)
      return this.#end(this.#answer?.end() ? null : reason)
    this.#move(this.#resendable, this.#asker)
  }

  /**
   * A receiver may close an idle connection at any time, and many do it without notice (uvicorn after 5 s). A request that meets the close
   * says nothing about the receiver. The other connection is a fresh one, so the request moves at most once.
   */
  #move({ head, body }: Written, asker: Asker): void {
    this.#asker = null
    this.#end(null)
    const other = this.#owner.another()
    asker.moved(other)
    other.request(head, body, asker)
  }

  #end(error: Error | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#socket?.destroy()
    this.#owner.ended(this)
    this.#tell(error)
  }
}

const UNWRITTEN = new EndOfTurn<Connection>((connection) => connection.write())

function write(socket: Socket, { head, body }: Written): void {
  // Goes to the socket from the stack, with no buffer made of it.
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
