/** The payload: 1 kB of JSON that begins with its number, so that the receiver need not parse the rest. */

export const PAYLOAD_BYTES = 1024
const DIGITS = 8
const OPENING = '{"n":"'
const TEXT = "x".repeat(PAYLOAD_BYTES - OPENING.length - DIGITS - '","text":""}'.length)
const ZERO = 48

/** One more than the largest number that fits. */
export const MOST_ORDINALS = 10 ** DIGITS

export function payloadOf(ordinal: number): { readonly n: string; readonly text: string } {
  return { n: String(ordinal).padStart(DIGITS, "0"), text: TEXT }
}

export function bodyOf(ordinal: number): Buffer {
  return Buffer.from(JSON.stringify(payloadOf(ordinal)))
}

/** Writes into a reused body: allocating bodies would be the bare loop's largest cost after the request. */
export function writeOrdinal(bytes: Uint8Array, ordinal: number, bodyAt = 0): void {
  for (let i = bodyAt + OPENING.length + DIGITS - 1, rest = ordinal; i >= bodyAt + OPENING.length; i--) {
    bytes[i] = ZERO + (rest % 10)
    rest = Math.floor(rest / 10)
  }
}

/** NaN: not a payload of ours. */
export function readOrdinal(bytes: Uint8Array, bodyAt: number): number {
  let ordinal = 0
  for (let i = bodyAt + OPENING.length; i < bodyAt + OPENING.length + DIGITS; i++) {
    const digit = bytes[i]! - ZERO
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    ordinal = ordinal * 10 + digit
  }
  return ordinal
}
