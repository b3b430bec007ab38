/**
 * Reads one answer to one request, as it comes from the socket: strict about its form, bounded in every direction, nothing of it
 * unpacked. Nothing is pipelined, so bytes that do not belong to it end the connection instead of becoming another's answer.
 */
import { type Bytes, copyOfBytes } from "../../core/bytes.ts"
import { Chunks } from "./chunks.ts"
import { EgressError } from "./guard.ts"
import { type Head, readHead } from "./head.ts"

const MOST_HEAD_BYTES = 16_384
/** More than a drip can bring before the deadline. */
const MOST_INTERIM_ANSWERS = 1000
const MOST_BODY_BYTES = 65_536
/** Eight times what is kept of a body: one that comes in chunks of a single byte takes six. */
const MOST_ANSWER_BYTES = 524_288

const NOTHING = Buffer.alloc(0)
const END_OF_HEAD = Buffer.from("\r\n\r\n")
const BEGINNING = Buffer.from("HTTP/1.")
const [CR, LF] = Buffer.from("\r\n")

export class AnswerReader {
  /** Of the final answer, when it is read. */
  head: Head | null = null
  /** The body was longer than what is kept. */
  isTruncated = false
  #isOver = false
  /** Something came that is no part of it. */
  #hasMore = false
  #taken = 0
  #interimAnswers = 0
  /** A head that comes in pieces. */
  #pieces: Buffer = NOTHING
  #piecesLength = 0
  #chunks: Chunks | null = null
  #bodyLeft = 0
  /** Grows with what comes: kept as the pieces it came in, a body of single bytes took 7 MB for one request. */
  #body: Buffer = NOTHING
  #bodyLength = 0
  /** One that came in one piece, as most do. */
  #wholeBody: Bytes | null = null

  /** What came of the body. The bytes are its own, to be handed to another thread. */
  get body(): Bytes {
    if (this.#wholeBody !== null) return this.#wholeBody
    return this.#body.length === this.#bodyLength ? this.#body : this.#body.subarray(0, this.#bodyLength)
  }

  /** Whether another request may follow on the connection. */
  get leavesConnection(): boolean {
    return this.#isOver && !this.#hasMore && !this.isTruncated && this.head?.isLast === false
  }

  /** Takes the first `length` bytes, which the caller may use again afterwards; true when the answer is complete. */
  take(bytes: Buffer, length: number): boolean {
    let at = 0
    while (at < length && !this.#isOver) {
      if (this.head === null) at = this.#takeHead(bytes, at, length)
      else if (this.#chunks !== null) at = this.#takeChunks(this.#chunks, bytes, at, length)
      else at = this.#takeBody(bytes, at, length)
    }
    if (skipLineBreaks(bytes, at, length) < length) this.#hasMore = true
    // Heads and bodies have limits of their own; extensions of chunks, trailers, and line breaks before an answer have none but this.
    this.#taken += length
    if (!this.#isOver && this.#taken > MOST_ANSWER_BYTES)
      throw tooLarge(`more than ${MOST_ANSWER_BYTES} bytes for one answer`)
    return this.#isOver
  }

  /** The receiver has ended the connection; true when that completes the answer. */
  end(): boolean {
    return this.head?.body === "connection"
  }

  #takeHead(bytes: Buffer, from: number, length: number): number {
    if (this.#piecesLength > 0) return this.#takePieceOfHead(bytes, from, length)
    // Some receivers end a body with a line break too many.
    const at = skipLineBreaks(bytes, from, length)
    const end = bytes.indexOf(END_OF_HEAD, at)
    // What stands behind `length` is of an earlier read.
    if (end === -1 || end + END_OF_HEAD.length > length) return this.#takePieceOfHead(bytes, at, length)
    this.#readHead(bytes.toString("latin1", at, end))
    return end + END_OF_HEAD.length
  }

  #takePieceOfHead(bytes: Buffer, at: number, length: number): number {
    const before = this.#piecesLength
    const room = MOST_HEAD_BYTES + END_OF_HEAD.length - before
    const copied = Math.min(length - at, room)
    this.#pieces = withRoom(this.#pieces, before, before + copied)
    bytes.copy(this.#pieces, before, at, at + copied)
    this.#piecesLength = before + copied
    const end = this.#pieces.subarray(0, before + copied).indexOf(END_OF_HEAD, Math.max(0, before - 3))
    if (end !== -1) {
      this.#piecesLength = 0
      this.#readHead(this.#pieces.toString("latin1", 0, end))
      return at + end + END_OF_HEAD.length - before
    }
    this.#refuseOtherProtocols()
    this.#refuseLoneLineBreaks(before)
    if (copied === room) throw tooLarge(`more than ${MOST_HEAD_BYTES} bytes of headers`)
    return length
  }

  /** What speaks another protocol may go on for long without an empty line. */
  #refuseOtherProtocols(): void {
    const known = Math.min(BEGINNING.length, this.#piecesLength)
    if (BEGINNING.compare(this.#pieces, 0, known, 0, known) !== 0)
      throw new EgressError("invalid_response", "what came is not HTTP/1")
  }

  /** A head of lone LFs has no end that the search for CR LF CR LF would find: the request would hang until its deadline. */
  #refuseLoneLineBreaks(from: number): void {
    for (let at = Math.max(1, from); at < this.#piecesLength; at++)
      if ((this.#pieces[at] === LF) !== (this.#pieces[at - 1] === CR))
        throw new EgressError("invalid_response", "a line of the head does not end in CR LF")
  }

  #readHead(text: string): void {
    if (text.length > MOST_HEAD_BYTES) throw tooLarge(`more than ${MOST_HEAD_BYTES} bytes of headers`)
    const head = readHead(text)
    if (head.status < 200) return this.#passOver(head.status)
    this.head = head
    if (head.body === "chunks") this.#chunks = new Chunks()
    else if (head.body === 0) this.#isOver = true
    else this.#bodyLeft = head.body === "connection" ? Number.POSITIVE_INFINITY : head.body
  }

  /** Early hints, or leave to go on, are not the answer. To switch protocols was not asked for. */
  #passOver(status: number): void {
    if (status < 100 || status === 101)
      throw new EgressError("invalid_response", `${status} was not asked for`)
    if (++this.#interimAnswers > MOST_INTERIM_ANSWERS) throw tooLarge("more interim answers than are read")
  }

  #takeChunks(chunks: Chunks, bytes: Buffer, from: number, length: number): number {
    const at = chunks.skipFrame(bytes, from, length)
    if (chunks.isOver) this.#isOver = true
    if (chunks.isOver || at === length) return at
    const came = Math.min(chunks.left, length - at)
    this.#keep(bytes, at, at + came)
    chunks.took(came)
    return at + came
  }

  #takeBody(bytes: Buffer, at: number, length: number): number {
    const came = Math.min(this.#bodyLeft, length - at)
    if (came === this.head?.body && came <= MOST_BODY_BYTES)
      this.#wholeBody = copyOfBytes(bytes.subarray(at, at + came))
    else this.#keep(bytes, at, at + came)
    this.#bodyLeft -= came
    if (this.#bodyLeft === 0) this.#isOver = true
    return at + came
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

/** With room for `size` bytes, of which the first `used` are there. Twice as large each time, so that single bytes cost no more. */
function withRoom(buffer: Buffer, used: number, size: number): Buffer {
  if (size <= buffer.length) return buffer
  // Of its own: on its way to the store's thread, a piece of Node's shared buffer takes all 64 KiB along, 34 µs instead of 6.
  const larger = Buffer.allocUnsafeSlow(Math.max(size, Math.min(buffer.length * 2, MOST_BODY_BYTES)))
  buffer.copy(larger, 0, 0, used)
  return larger
}

function skipLineBreaks(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to && (bytes[at] === CR || bytes[at] === LF)) at++
  return at
}

function tooLarge(detail: string): EgressError {
  return new EgressError("response_too_large", detail)
}
