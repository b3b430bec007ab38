/** What an API key looks like on the wire, and the digest that is kept of it. */
import { hash, timingSafeEqual } from "node:crypto"
import type { RandomBytes } from "../core/ids.ts"

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const ID_LENGTH = 16
const SECRET_LENGTH = 40
/** Shorter than this, a key of the operator's own could be guessed. */
export const SHORTEST_OWN_KEY = 24

export interface Token {
  /** Names the key; may be shown. */
  readonly id: string
  readonly secret: string
  /** An operator made it; all of it is its secret. */
  readonly isOwn: boolean
}

/** `ph_<id>_<secret>`. */
export function makeToken(randomBytes: RandomBytes): Token & { readonly text: string } {
  const id = randomText(ID_LENGTH, randomBytes)
  const secret = randomText(SECRET_LENGTH, randomBytes)
  return { id, secret, isOwn: false, text: `ph_${id}_${secret}` }
}

/** One of ours, or any other text that is long enough: an operator may have made it with a tool of their own. Null for neither. */
export function readToken(text: string): Token | null {
  const [, id, secret] = /^ph_([0-9A-Za-z]{16})_([0-9A-Za-z]{32,128})$/.exec(text) ?? []
  if (id !== undefined && secret !== undefined) return { id, secret, isOwn: false }
  if (text.startsWith("ph_") || !/^[\x21-\x7e]{24,512}$/.test(text)) return null
  const digest = hash("sha256", `posthorn key${text}`, "buffer")
  let name = ""
  for (let i = 0; i < ID_LENGTH; i++) name += ALPHABET[digest[i]! % 62]
  return { id: name, secret: text, isOwn: true }
}

export function digestOf(secret: string): string {
  return hash("sha256", secret, "hex")
}

export function hasDigest(secret: string, digest: string): boolean {
  return isSame(Buffer.from(digestOf(secret)), Buffer.from(digest))
}

/** In the same time, whatever the difference. */
function isSame(given: Uint8Array, kept: Uint8Array): boolean {
  return given.length === kept.length && timingSafeEqual(given, kept)
}

/** One that had the right digest a moment ago. */
export class Secret {
  readonly #bytes: Uint8Array

  constructor(text: string) {
    this.#bytes = Buffer.from(text)
  }

  is(text: string): boolean {
    return isSame(Buffer.from(text), this.#bytes)
  }
}

/** Bytes of 248 and above are drawn again: they would make the first letters likelier. */
function randomText(length: number, randomBytes: RandomBytes): string {
  const bytes = new Uint8Array(64)
  let text = ""
  while (text.length < length) {
    randomBytes(bytes)
    for (const byte of bytes) if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
  }
  return text
}
