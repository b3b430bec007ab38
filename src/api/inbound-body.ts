/** Bodies of strangers: read to a limit and a deadline, and connections that are closed with their body unread. */
import type { IncomingMessage, ServerResponse } from "node:http"

/** The body, or why there is none: it exceeds the limit, or it did not come in time. */
export type BodyRead = Buffer | "size" | "timeout"

export function readBody(request: IncomingMessage, mostBytes: number, deadlineMs: number): Promise<BodyRead> {
  const { promise, resolve } = Promise.withResolvers<BodyRead>()
  const body = new Gathered(mostBytes)
  const timer = setTimeout(() => end("timeout"), deadlineMs)
  const end = (read: BodyRead) => {
    clearTimeout(timer)
    request.off("data", add).off("end", finish).off("close", cut)
    resolve(read)
  }
  const add = (chunk: Buffer) => {
    if (!body.add(chunk)) end("size")
  }
  const finish = () => end(body.bytes)
  const cut = () => end("timeout")
  if (request.destroyed) end("timeout")
  else request.on("data", add).on("end", finish).on("close", cut)
  return promise
}

const LEAST_ROOM = 4096

/** One growing buffer: a client may send its body in chunks of a byte, each of which would be an object of 200 bytes. */
class Gathered {
  readonly #most: number
  /** A body in one chunk is not copied. */
  #room: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(most: number) {
    this.#most = most
  }

  /** False: the body exceeds the limit. */
  add(chunk: Buffer): boolean {
    const length = this.#length + chunk.length
    if (length > this.#most) return false
    if (this.#length === 0) this.#room = chunk
    else {
      if (length > this.#room.length) this.#grow(length)
      chunk.copy(this.#room, this.#length)
    }
    this.#length = length
    return true
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.min(this.#most, Math.max(length, 2 * this.#length, LEAST_ROOM)))
    this.#room.copy(grown, 0, 0, this.#length)
    this.#room = grown
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }
}

/** A shorter rest of a body is read and dropped by Node, and the connection goes on. */
const LONGEST_REST = 65_536
/** How long a client has to see the response before its connection is cut. */
const LINGER_MS = 1000

export interface Reply {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

export function respond(
  request: IncomingMessage,
  response: ServerResponse,
  reply: Reply,
  close: boolean,
): void {
  const { status, headers, body } = reply
  const isCut = unreadBytes(request) > LONGEST_REST
  response.writeHead(status, {
    ...headers,
    "content-length": Buffer.byteLength(body),
    ...(close || isCut ? { connection: "close" } : {}),
  })
  if (isCut) linger(request, response, body)
  else response.end(body)
}

/** At most; a chunked body may have no end. */
function unreadBytes({ complete, headers }: IncomingMessage): number {
  if (complete) return 0
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Infinity
}

/** More are closed at once: strangers choose how many connections linger. */
const MOST_LINGERING = 500
let lingering = 0

/** Closing at once would reset the connection, and a client that is still sending would not see the response. */
function linger(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (lingering >= MOST_LINGERING) return void response.end(body, () => request.socket.destroy())
  lingering++
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS)
  let hasEnded = false
  const end = () => {
    if (hasEnded) return
    hasEnded = true
    lingering--
    clearTimeout(timer)
    response.end()
  }
  response.write(body)
  request.on("end", end).on("close", end).resume()
}
