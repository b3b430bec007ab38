/**
 * Parses the response to one request from the bytes of a socket: strict about the form, bounded in every direction, without
 * decompression. Requests are not pipelined, so surplus bytes end the connection: they never become another request's response.
 */
import { type Bytes, copyOfBytes } from "../../core/bytes.ts"
import { TransportError } from "../error.ts"
import { ChunkedFraming } from "./chunked.ts"
import { parseResponseHead, type ResponseHead } from "./response-head.ts"

const MOST_HEAD_BYTES = 16_384
/** A receiver that drips interim responses reaches its deadline before this number. */
const MOST_INTERIM_RESPONSES = 1000
const MOST_BODY_BYTES = 65_536
/** Eight times the body limit: a body in chunks of a single byte takes six bytes on the wire for each of its own. */
const MOST_RESPONSE_BYTES = 524_288

const NOTHING = Buffer.alloc(0)
const END_OF_HEAD = Buffer.from("\r\n\r\n")
const PROTOCOL = Buffer.from("HTTP/1.")
const [CR, LF] = Buffer.from("\r\n")

export class ResponseReader {
  /** Null until the head of the final response is complete; interim responses (1xx) do not count. */
  head: ResponseHead | null = null
  /** The body was longer than the limit; only its beginning is kept. */
  isTruncated = false
  #isOver = false
  /** Bytes came behind the end of the response. */
  #hasSurplus = false
  #bytesRead = 0
  #interimResponses = 0
  /** A head that comes in several reads. */
  #partialHead: Buffer = NOTHING
  #partialHeadLength = 0
  #chunked: ChunkedFraming | null = null
  #bodyLeft = 0
  /** One growing buffer: a list of the buffers that were read took 7 MB for a body that came byte by byte. */
  #body: Buffer = NOTHING
  #bodyLength = 0
  /** Instead of `#body` where the body came in one read, as most do. */
  #wholeBody: Bytes | null = null

  /** The part of the body that was read. It shares no memory, so it can be transferred to another thread. */
  get body(): Bytes {
    if (this.#wholeBody !== null) return this.#wholeBody
    return this.#body.length === this.#bodyLength ? this.#body : this.#body.subarray(0, this.#bodyLength)
  }

  /** Whether the connection can take another request. */
  get leavesConnection(): boolean {
    return this.#isOver && !this.#hasSurplus && !this.isTruncated && this.head?.isLast === false
  }

  /** Parses the first `length` bytes, and keeps no reference to the buffer. True when the response is complete. */
  take(bytes: Buffer, length: number): boolean {
    let at = 0
    while (at < length && !this.#isOver) {
      if (this.head === null) at = this.#takeHead(bytes, at, length)
      else if (this.#chunked !== null) at = this.#takeChunked(this.#chunked, bytes, at, length)
      else at = this.#takeBody(bytes, at, length)
    }
    if (skipLineBreaks(bytes, at, length) < length) this.#hasSurplus = true
    // The only limit of chunk extensions, trailers and line breaks before a response. Heads and bodies have limits of their own.
    this.#bytesRead += length
    if (!this.#isOver && this.#bytesRead > MOST_RESPONSE_BYTES)
      throw tooLarge(`more than ${MOST_RESPONSE_BYTES} bytes for one response`)
    return this.#isOver
  }

  /** The receiver closed the connection. True when that completes the response. */
  end(): boolean {
    return this.head?.body === "connection"
  }

  #takeHead(bytes: Buffer, from: number, length: number): number {
    if (this.#partialHeadLength > 0) return this.#takePartialHead(bytes, from, length)
    // Some receivers send a line break behind a body; it comes before the next response.
    const at = skipLineBreaks(bytes, from, length)
    const end = bytes.indexOf(END_OF_HEAD, at)
    // The bytes behind `length` belong to an earlier read.
    if (end === -1 || end + END_OF_HEAD.length > length) return this.#takePartialHead(bytes, at, length)
    this.#readHead(bytes.toString("latin1", at, end))
    return end + END_OF_HEAD.length
  }

  #takePartialHead(bytes: Buffer, at: number, length: number): number {
    const before = this.#partialHeadLength
    const room = MOST_HEAD_BYTES + END_OF_HEAD.length - before
    const copied = Math.min(length - at, room)
    this.#partialHead = withRoom(this.#partialHead, before, before + copied)
    bytes.copy(this.#partialHead, before, at, at + copied)
    this.#partialHeadLength = before + copied
    const end = this.#partialHead.subarray(0, before + copied).indexOf(END_OF_HEAD, Math.max(0, before - 3))
    if (end !== -1) {
      this.#partialHeadLength = 0
      this.#readHead(this.#partialHead.toString("latin1", 0, end))
      return at + end + END_OF_HEAD.length - before
    }
    this.#refuseOtherProtocols()
    this.#refuseLoneLineBreaks(before)
    if (copied === room) throw tooLarge(`more than ${MOST_HEAD_BYTES} bytes of headers`)
    return length
  }

  /** A server of another protocol may never send an empty line: without this check the request would wait for its deadline. */
  #refuseOtherProtocols(): void {
    const read = Math.min(PROTOCOL.length, this.#partialHeadLength)
    if (PROTOCOL.compare(this.#partialHead, 0, read, 0, read) !== 0)
      throw new TransportError("invalid_response", "the response is not HTTP/1")
  }

  /** The search for CR LF CR LF never finds the end of a head with lone LFs: the request would wait for its deadline. */
  #refuseLoneLineBreaks(from: number): void {
    for (let at = Math.max(1, from); at < this.#partialHeadLength; at++)
      if ((this.#partialHead[at] === LF) !== (this.#partialHead[at - 1] === CR))
        throw new TransportError("invalid_response", "a line of the head does not end in CR LF")
  }

  #readHead(text: string): void {
    if (text.length > MOST_HEAD_BYTES) throw tooLarge(`more than ${MOST_HEAD_BYTES} bytes of headers`)
    const head = parseResponseHead(text)
    if (head.status < 200) return this.#skipInterim(head.status)
    this.head = head
    if (head.body === "chunked") this.#chunked = new ChunkedFraming()
    else if (head.body === 0) this.#isOver = true
    else this.#bodyLeft = head.body === "connection" ? Number.POSITIVE_INFINITY : head.body
  }

  /** 100 Continue and 103 Early Hints come before the final response. 101 Switching Protocols answers an upgrade, which no request asks for. */
  #skipInterim(status: number): void {
    if (status < 100 || status === 101)
      throw new TransportError("invalid_response", `unexpected status ${status}`)
    if (++this.#interimResponses > MOST_INTERIM_RESPONSES)
      throw tooLarge(`more than ${MOST_INTERIM_RESPONSES} interim responses`)
  }

  #takeChunked(framing: ChunkedFraming, bytes: Buffer, from: number, length: number): number {
    const at = framing.skip(bytes, from, length)
    if (framing.isOver) this.#isOver = true
    if (framing.isOver || at === length) return at
    const count = Math.min(framing.dataLeft, length - at)
    this.#keep(bytes, at, at + count)
    framing.took(count)
    return at + count
  }

  #takeBody(bytes: Buffer, at: number, length: number): number {
    const count = Math.min(this.#bodyLeft, length - at)
    if (count === this.head?.body && count <= MOST_BODY_BYTES)
      this.#wholeBody = copyOfBytes(bytes.subarray(at, at + count))
    else this.#keep(bytes, at, at + count)
    this.#bodyLeft -= count
    if (this.#bodyLeft === 0) this.#isOver = true
    return at + count
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    const before = this.#bodyLength
    const kept = Math.min(to - from, MOST_BODY_BYTES - before)
    this.#body = withRoom(this.#body, before, before + kept)
    bytes.copy(this.#body, before, from, from + kept)
    this.#bodyLength = before + kept
    if (kept === to - from) return
    this.isTruncated = true
    this.#isOver = true
  }
}

/** A buffer of at least `size` bytes that begins with the first `used` bytes of this one. It doubles, so that a body of single bytes is not copied each time. */
function withRoom(buffer: Buffer, used: number, size: number): Buffer {
  if (size <= buffer.length) return buffer
  // Not from Node's shared pool: posting a slice of the pool to the store's thread copies all 64 KiB of it, 34 µs instead of 6.
  const larger = Buffer.allocUnsafeSlow(Math.max(size, Math.min(buffer.length * 2, MOST_BODY_BYTES)))
  buffer.copy(larger, 0, 0, used)
  return larger
}

function skipLineBreaks(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to && (bytes[at] === CR || bytes[at] === LF)) at++
  return at
}

function tooLarge(detail: string): TransportError {
  return new TransportError("response_too_large", detail)
}
