/** Receivers that mean harm, as one raw server on loopback: the path of a request says how it is treated. */

import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { Watchers } from "./watchers.ts"

type Treatment = (socket: Socket) => void

const OK = "HTTP/1.1 200 OK\r\n"
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`
const DRIP_MS = 50
const LARGE_CHUNK = Buffer.from(`10000\r\n${"x".repeat(0x1_0000)}\r\n`)
const FILLER = Buffer.alloc(0x1_0000, "a")

/** 52 MB of nothing in 51 kB: small enough to be kept whole, and a disaster for whoever unpacks it. */
export const BOMB: Buffer = gzipSync(Buffer.alloc(52 * 1024 * 1024))
export const NOT_TEXT: Buffer = Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x80, 0x0a])

/** Each keeps the sender waiting; only its own deadline ends it. */
export const STALLS = {
  "never-answers": () => {},
  "never-reads": (socket) => void socket.pause(),
  "early-hints": drip("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"),
  "drips-status": drip("HTTP/1.1 200 ", "x"),
  "drips-headers": drip(OK, "x-a: b\r\n", 1),
  "drips-body": drip(`${OK}content-length: 100000\r\n\r\n`, "x"),
  "drips-chunks": drip(CHUNKED, "1\r\nx\r\n"),
  "drips-trailers": drip(`${CHUNKED}1\r\nx\r\n0\r\n`, "x-a: b\r\n"),
} satisfies { readonly [path: string]: Treatment }

/** Each sends more than anyone wants to keep. */
export const FLOODS = {
  "endless-body": pour(CHUNKED, LARGE_CHUNK),
  "ten-gigabytes": pour(`${OK}content-length: 10737418240\r\n\r\n`, Buffer.alloc(0x1_0000, "x")),
  "one-byte-chunks": pour(CHUNKED, Buffer.from("1\r\nx\r\n".repeat(1000))),
  "gzip-bomb": (socket) => {
    socket.write(`${OK}content-encoding: gzip\r\ncontent-length: ${BOMB.length}\r\n\r\n`)
    socket.write(BOMB)
  },
  "endless-gzip": pour(`${OK}content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n`, LARGE_CHUNK),
  "many-headers": (socket) => {
    const headers = Array.from({ length: 10_000 }, (_, i) => `x-${i}: ${i}\r\n`).join("")
    socket.end(`${OK}${headers}content-length: 0\r\n\r\n`)
  },
  "many-small-headers": (socket) =>
    void socket.end(`${OK}${"a:\r\n".repeat(10_000)}content-length: 0\r\n\r\n`),
  "large-header": (socket) =>
    void socket.end(`${OK}x-large: ${"x".repeat(1_000_000)}\r\ncontent-length: 0\r\n\r\n`),
  "endless-headers": pour(OK, Buffer.from("x-a: b\r\n".repeat(1000))),
  "endless-trailers": pour(`${CHUNKED}1\r\nx\r\n0\r\n`, Buffer.from("x-a: b\r\n".repeat(1000))),
  // Line breaks are neither a header nor a body, and have no limit but that of the whole answer.
  "endless-reason": pour("HTTP/1.1 200 ", FILLER),
  "endless-line-breaks": pour("", Buffer.from("\r\n".repeat(0x8000))),
  "endless-chunk-size": pour(`${CHUNKED}0`, Buffer.alloc(0x1_0000, "0")),
  "endless-chunk-extension": pour(`${CHUNKED}1;`, FILLER),
  "extended-crumbs": pour(CHUNKED, Buffer.from(`1;${"a".repeat(4000)}\r\nx\r\n`.repeat(16))),
  "endless-hints": pour("", Buffer.from("HTTP/1.1 103 x\r\n\r\n".repeat(1000))),
} satisfies { readonly [path: string]: Treatment }

/** Each breaks off, or does not speak HTTP. */
export const BREAKS = {
  "resets-at-once": (socket) => void socket.resetAndDestroy(),
  "closes-at-once": (socket) => void socket.end(),
  "resets-after-headers": (socket) =>
    void socket.write(`${OK}content-length: 100\r\n\r\n`, () => socket.resetAndDestroy()),
  "closes-after-headers": (socket) => void socket.end(`${OK}content-length: 100\r\n\r\nhalf`),
  garbage: (socket) => void socket.end(Buffer.concat([NOT_TEXT, Buffer.alloc(1000, 0x80)])),
  "another-protocol": (socket) => void socket.end("220 mail.example.com ESMTP\r\n\r\n"),
  "broken-chunks": (socket) => void socket.end(`${CHUNKED}zz\r\n`),
} satisfies { readonly [path: string]: Treatment }

const KNOWN: { readonly [path: string]: Treatment } = { ...STALLS, ...FLOODS, ...BREAKS }

export class Hostile {
  /** How many requests have come to each path, by their first bytes. */
  readonly requests = new Map<string, number>()
  readonly #server: Server
  readonly #treatments: Map<string, Treatment>
  readonly #sockets = new Set<Socket>()
  readonly #watchers = new Watchers()

  private constructor() {
    this.#treatments = new Map(Object.entries(KNOWN))
    this.#server = createServer((socket) => this.#connected(socket))
  }

  static async start(): Promise<Hostile> {
    const hostile = new Hostile()
    await once(hostile.#server.listen(0, "127.0.0.1"), "listening")
    return hostile
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${path}`
  }

  /** Another treatment, under a path of its own. */
  treat(path: string, treatment: Treatment): string {
    this.#treatments.set(path, treatment)
    return this.url(path)
  }

  /** Answers with exactly these bytes. */
  answer(path: string, ...bytes: (string | Buffer)[]): string {
    const whole = Buffer.concat(bytes.map((part) => (typeof part === "string" ? Buffer.from(part) : part)))
    return this.treat(path, (socket) => void socket.end(whole))
  }

  get openSockets(): number {
    return this.#sockets.size
  }

  /** Resolves when so many requests have come, over all paths. */
  async arrived(count: number): Promise<void> {
    await this.#watchers.until(() => [...this.requests.values()].reduce((sum, n) => sum + n, 0) >= count)
  }

  /** Resolves when the sender has let go of every connection. */
  async deserted(): Promise<void> {
    // The end of a connection is not seen by who does not read.
    for (const socket of this.#sockets) socket.resume()
    await this.#watchers.until(() => this.#sockets.size === 0)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      this.#sockets.delete(socket)
      this.#watchers.changed()
    })
    socket.on("data", (chunk) => {
      const path = /^POST \/(\S*) HTTP\/1\.1\r\n/.exec(chunk.toString("latin1", 0, 256))?.[1]
      if (path === undefined) return
      this.requests.set(path, (this.requests.get(path) ?? 0) + 1)
      this.#treatments.get(path)?.(socket)
      this.#watchers.changed()
    })
  }
}

/** The piece again and again, whole or so many bytes of it at a time: often enough that no idle timer ever runs out. */
function drip(first: string, piece: string, bytes = piece.length): Treatment {
  return (socket) => {
    if (first !== "") socket.write(first)
    let at = 0
    const timer = setInterval(() => {
      socket.write(piece.slice(at, at + bytes))
      at = (at + bytes) % piece.length
    }, DRIP_MS)
    socket.on("close", () => clearInterval(timer))
  }
}

/** As much as the connection takes, until it is dropped. */
function pour(first: string, piece: Buffer): Treatment {
  return (socket) => {
    socket.write(first)
    const more = () => {
      if (socket.destroyed) return
      if (socket.write(piece)) setImmediate(more)
      else socket.once("drain", more)
    }
    more()
  }
}
