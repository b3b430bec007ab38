/** Payloads and bodies. ASCII text, as most JSON is, stays a string: it is stored, signed and sent without a buffer of its own. */
import { isAscii } from "node:buffer"

/** A string has only ASCII characters, so that its length is the number of its bytes. */
export type Bytes = Uint8Array | string

/** Larger texts are bytes, outside of V8's heap. */
const MOST_TEXT_BYTES = 16_384

export function bytesOfText(text: string): Bytes {
  // V8 counts the bytes of a one-byte string, which ASCII always is, with vector instructions.
  if (text.length <= MOST_TEXT_BYTES && Buffer.byteLength(text) === text.length) return text
  return new TextEncoder().encode(text)
}

/** A copy: the caller may reuse the memory, and posting a view to a thread would copy the whole buffer behind it. */
export function copyOfBytes({ buffer, byteOffset, byteLength }: ArrayBufferView): Bytes {
  const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  if (byteLength <= MOST_TEXT_BYTES && isAscii(bytes)) return bytes.toString("latin1")
  // Not a Buffer: posting a slice of Node's shared pool to the store's thread copies all 64 KiB of it, 34 µs instead of 6.
  return new Uint8Array(buffer, byteOffset, byteLength).slice()
}

/** Shares the memory, unless it is a string. */
export function toBuffer(bytes: Bytes): Buffer {
  if (typeof bytes === "string") return Buffer.from(bytes, "latin1")
  return Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)
}

export function writeBytes(bytes: Bytes, target: Buffer, at: number): void {
  if (typeof bytes === "string") target.write(bytes, at, "latin1")
  else target.set(bytes, at)
}
