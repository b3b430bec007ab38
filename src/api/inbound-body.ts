/** Bodies of strangers: read to a limit and a deadline, and connections that are closed with their body unread. */
import type { IncomingMessage, ServerResponse } from "node:http"

/** The body, or why there is none: it exceeds the limit, or it did not come in time. */
export type BodyRead = Buffer | "size" | "timeout"

export function readBody(request: IncomingMessage, mostBytes: number, deadlineMs: number): Promise<BodyRead> {
  const { promise, resolve } = Promise.withResolvers<BodyRead>()
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => end("timeout"), deadlineMs)
  const end = (read: BodyRead) => {
    clearTimeout(timer)
    request.off("data", add).off("end", finish).off("close", cut)
    resolve(read)
  }
  const add = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > mostBytes) end("size")
    else chunks.push(chunk)
  }
  const finish = () => end(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes))
  const cut = () => end("timeout")
  if (request.destroyed) end("timeout")
  else request.on("data", add).on("end", finish).on("close", cut)
  return promise
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

/** Closing at once would reset the connection, and a client that is still sending would not see the response. */
function linger(request: IncomingMessage, response: ServerResponse, body: string): void {
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS)
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  response.write(body)
  request.on("end", end).on("close", end).resume()
}
