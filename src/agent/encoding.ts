/** Bodies in frames: text where it is UTF-8, else base64. */
import { isUtf8 } from "node:buffer"
import { type EncodedBody, MOST_RESPONSE_BYTES } from "../core/relay-protocol.ts"

/** Control characters become six bytes of JSON: as text, 64 KiB of them would make a frame that the server refuses. */
const MOST_TEXT_BYTES = 98_304

export function decodeBody({ body, base64 }: EncodedBody): Buffer {
  return body === undefined ? Buffer.from(base64, "base64") : Buffer.from(body)
}

export type EncodedResponse = EncodedBody & { readonly truncated?: boolean }

/** The beginning of a response. Null: it is empty. */
export function encodeResponse({ buffer, byteOffset, byteLength }: Uint8Array): EncodedResponse | null {
  const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  if (byteLength === 0) return null
  return byteLength <= MOST_RESPONSE_BYTES
    ? encodeBody(bytes)
    : { ...encodeBody(beginning(bytes)), truncated: true }
}

function encodeBody(bytes: Buffer): EncodedBody {
  const body = isUtf8(bytes) ? bytes.toString() : null
  if (body !== null && Buffer.byteLength(JSON.stringify(body)) <= MOST_TEXT_BYTES) return { body }
  return { base64: bytes.toString("base64") }
}

/** Text is not cut within a character. */
function beginning(bytes: Buffer): Buffer {
  let end = MOST_RESPONSE_BYTES
  while (end > MOST_RESPONSE_BYTES - 3 && (bytes[end]! & 0xc0) === 0x80) end--
  const text = bytes.subarray(0, end)
  return isUtf8(text) ? text : bytes.subarray(0, MOST_RESPONSE_BYTES)
}
