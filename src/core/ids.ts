/** Ids in the 27-character KSUID form that sort by their time, and those of one process in the order in which it made them: `msg_2qY…`. */

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
const STEP_MS = 4
const LIMB_BITS = 24
const TWO_DIGITS = 62 ** 2
const FOUR_DIGITS = 62 ** 4
const PAIRS = Array.from({ length: TWO_DIGITS }, (_, i) => ALPHABET[Math.floor(i / 62)]! + ALPHABET[i % 62]!)

export function createIds(randomBytes: RandomBytes): Ids {
  // One draw fills many ids: a call into the random generator costs more than the rest of an id.
  const pool = new Uint8Array(RANDOM_BYTES * 256)
  let used = pool.length
  let lastStep = -1
  let count = 0
  return {
    make(prefix, nowMs) {
      if (used === pool.length) {
        randomBytes(pool)
        used = 0
      }
      const random = pool.subarray(used, used + RANDOM_BYTES)
      used += RANDOM_BYTES
      // Within one step the first two bytes count up, from somewhere in the lower half.
      const step = Math.floor(nowMs / STEP_MS)
      count = step === lastStep ? count + 1 : (random[0]! << 7) | (random[1]! >> 1)
      lastStep = step
      random[0] = count >> 8
      random[1] = count
      return `${prefix}_${ksuid(nowMs, random)}`
    },
  }
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-Za-z]{27}$/.test(text.slice(prefix.length + 1))
}

/** 4 bytes of seconds, 1 byte of 4 ms steps, 15 random bytes, in base 62. */
function ksuid(nowMs: number, random: Uint8Array): string {
  const seconds = Math.floor(nowMs / 1000)
  const step = Math.floor((nowMs - seconds * 1000) / STEP_MS)
  const limbs = [
    Math.floor((seconds - EPOCH_SECONDS) / 2 ** 16),
    ((seconds - EPOCH_SECONDS) % 2 ** 16) * 2 ** 8 + step,
  ]
  for (let i = 0; i < RANDOM_BYTES; i += 3)
    limbs.push((random[i]! << 16) | (random[i + 1]! << 8) | random[i + 2]!)
  return base62(limbs)
}

/** Long division of a 160-bit number, four digits at a time: a third of the time of one by one. */
function base62(limbs: number[]): string {
  let text = ""
  for (let chunk = 0; chunk < LENGTH / 4; chunk++) {
    let remainder = 0
    for (let i = 0; i < limbs.length; i++) {
      const value = remainder * 2 ** LIMB_BITS + limbs[i]!
      const quotient = Math.floor(value / FOUR_DIGITS)
      limbs[i] = quotient
      remainder = value - quotient * FOUR_DIGITS
    }
    text = PAIRS[Math.floor(remainder / TWO_DIGITS)]! + PAIRS[remainder % TWO_DIGITS]! + text
  }
  return text.slice(-LENGTH)
}
