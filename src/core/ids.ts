/** Time-sortable ids in the 27-character KSUID form, with four-millisecond resolution: `msg_2qY…`. */

export type IdPrefix = "app" | "ep" | "msg" | "dlv" | "atmpt" | "qtask" | "evtype"

/** Fills the buffer with random bytes. */
export type RandomBytes = (into: Uint8Array) => void

export interface Ids {
  make(prefix: IdPrefix, nowMs: number): string
}

const EPOCH_SECONDS = 1_400_000_000
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const LENGTH = 27
const RANDOM_BYTES = 15

export function createIds(randomBytes: RandomBytes): Ids {
  // One draw fills many ids: a call into the random generator costs more than the rest of an id.
  const pool = new Uint8Array(RANDOM_BYTES * 256)
  let used = pool.length
  return {
    make(prefix, nowMs) {
      if (used === pool.length) {
        randomBytes(pool)
        used = 0
      }
      const id = `${prefix}_${ksuid(nowMs, pool.subarray(used, used + RANDOM_BYTES))}`
      used += RANDOM_BYTES
      return id
    },
  }
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-Za-z]{27}$/.test(text.slice(prefix.length + 1))
}

/** 4 bytes of seconds, 1 byte of 4 ms steps, 15 random bytes, in base 62. */
function ksuid(nowMs: number, random: Uint8Array): string {
  const seconds = Math.floor(nowMs / 1000)
  const limbs = new Uint32Array(5)
  limbs[0] = seconds - EPOCH_SECONDS
  const step = Math.floor((nowMs - seconds * 1000) / 4)
  const bytes = [step, ...random]
  for (let i = 0; i < 4; i++) {
    limbs[i + 1] =
      ((bytes[i * 4]! << 24) | (bytes[i * 4 + 1]! << 16) | (bytes[i * 4 + 2]! << 8) | bytes[i * 4 + 3]!) >>> 0
  }
  return base62(limbs)
}

/** Long division of a 160-bit number; BigInt took three times as long. */
function base62(limbs: Uint32Array): string {
  let text = ""
  for (let digit = 0; digit < LENGTH; digit++) {
    let remainder = 0
    for (let i = 0; i < limbs.length; i++) {
      const value = remainder * 2 ** 32 + limbs[i]!
      limbs[i] = Math.floor(value / 62)
      remainder = value % 62
    }
    text = ALPHABET[remainder] + text
  }
  return text
}
