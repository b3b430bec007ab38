/**
 * The receiver, in a process of its own: a bare `net` server that parses only the length and the number of a request and keeps the
 * ledger. `/hang/…` never gets a response, `/fail/…` gets 500, `/slow/MS/…` gets it after a delay, other paths get 200 at once.
 */
import { createServer, type Socket } from "node:net"
import { sharedNow } from "../harness/clock.ts"
import { type Expectation, Ledger } from "../harness/ledger.ts"
import { readOrdinal } from "../harness/payload.ts"

export type Question =
  | { readonly kind: "expect"; readonly expectation: Expectation }
  | { readonly kind: "ask" }

const OK = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
const FAILED = Buffer.from("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno")
const END_OF_HEAD = Buffer.from("\r\n\r\n")
const LENGTH = Buffer.from("content-length: ")
const EMPTY = Buffer.alloc(0)
const CARRIAGE_RETURN = 13
/** The position of the path's first letter, after "POST /". */
const KIND_AT = 6
const [HANG, FAIL, SLOW] = Buffer.from("hfs")

const ledger = new Ledger()
let cpuBefore = process.cpuUsage()
let expectedAt = sharedNow()

const server = createServer((socket) => {
  let rest: Buffer = EMPTY
  socket.setNoDelay(true)
  socket.on("error", () => {})
  socket.on("data", (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const head = rest.indexOf(END_OF_HEAD)
      if (head === -1) return
      const bodyAt = head + END_OF_HEAD.length
      const end = bodyAt + contentLength(rest, head)
      if (rest.length < end) return
      take(socket, rest, bodyAt)
      rest = rest.length === end ? EMPTY : rest.subarray(end)
    }
  })
})

function contentLength(bytes: Buffer, head: number): number {
  const at = bytes.indexOf(LENGTH)
  if (at === -1 || at > head) return 0
  return Number(bytes.toString("latin1", at + LENGTH.length, bytes.indexOf(CARRIAGE_RETURN, at)))
}

function take(socket: Socket, request: Buffer, bodyAt: number): void {
  const kind = request[KIND_AT]
  if (kind === HANG) return ledger.hung()
  if (ledger.arrived(readOrdinal(request, bodyAt), sharedNow())) process.send!({ kind: "reached" })
  if (kind === SLOW) {
    const [, , delayMs] = request.toString("latin1", 0, bodyAt).split("/")
    setTimeout(() => socket.write(OK), Number(delayMs))
  } else socket.write(kind === FAIL ? FAILED : OK)
}

server.listen(0, "127.0.0.1", () => {
  process.send!({ kind: "listening", port: (server.address() as { port: number }).port })
})

process.on("message", (question: Question) => {
  const at = sharedNow()
  if (question.kind === "expect") {
    ledger.expect(question.expectation)
    cpuBefore = process.cpuUsage()
    expectedAt = at
    process.send!({ kind: "ready", at })
  } else {
    const { user, system } = process.cpuUsage(cpuBefore)
    const busyShare = (user + system) / 1000 / (at - expectedAt)
    process.send!({ kind: "books", tally: ledger.tally(), busyShare })
  }
})
process.on("disconnect", () => process.exit(0))
