/**
 * What is stored, signed and sent. An ASCII text is its own bytes, in every encoding: it crosses threads, is signed and goes to a socket
 * without a buffer being made of it on the way, and most JSON is ASCII.
 */
import { isAscii } from "node:buffer"

/** A string has ASCII characters alone, so that its length is that of its bytes. */
export type Bytes = Uint8Array | string

/** Larger ones are bytes, outside of the heap. */
const MOST_TEXT_BYTES = 16_384

export function bytesOfText(text: string): Bytes {
  // For a text of one byte a character, which ASCII always is, V8 counts with vector instructions.
  if (text.length <= MOST_TEXT_BYTES && Buffer.byteLength(text) === text.length) return text
  return new TextEncoder().encode(text)
}

/** A copy: the caller may go on with the memory, and a view of a large one would take all of it along. */
export function copyOfBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Bytes {
  const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  if (byteLength <= MOST_TEXT_BYTES && isAscii(bytes)) return bytes.toString("latin1")
  // Not a Buffer: on its way to the store's thread, a piece of Node's shared buffer takes all 64 KiB along, 34 µs instead of 6.
  return new Uint8Array(buffer, byteOffset, byteLength).slice()
}

/** The same memory, unless it is a text. */
export function toBuffer(bytes: Bytes): Buffer {
  if (typeof bytes === "string") return Buffer.from(bytes, "latin1")
  return Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)
}

/** Writes them into `target` from there on. */
export function writeBytes(bytes: Bytes, target: Buffer, at: number): void {
  if (typeof bytes === "string") target.write(bytes, at, "latin1")
  else target.set(bytes, at)
}
