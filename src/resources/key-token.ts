/** The text of an API key, and the digest of its secret. */
import { hash, timingSafeEqual } from "node:crypto"
import type { RandomBytes } from "../core/ids.ts"

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const ID_LENGTH = 16
const SECRET_LENGTH = 40
/** A shorter key of an operator's own could be guessed. */
export const SHORTEST_OWN_KEY = 24

/** The kind of a token: an API key, or a session that was opened with one. */
export type TokenKind = "key" | "session"

const PREFIXES: { readonly [K in TokenKind]: string } = { key: "ph", session: "phs" }

export interface Token {
  readonly kind: TokenKind
  /** Public. */
  readonly id: string
  readonly secret: string
  /** Made by an operator: the whole text is the secret. */
  readonly isOwn: boolean
}

/** `ph_<id>_<secret>` for a key, `phs_<id>_<secret>` for a session. */
export function makeToken(kind: TokenKind, randomBytes: RandomBytes): Token & { readonly text: string } {
  const id = randomText(ID_LENGTH, randomBytes)
  const secret = randomText(SECRET_LENGTH, randomBytes)
  return { kind, id, secret, isOwn: false, text: `${PREFIXES[kind]}_${id}_${secret}` }
}

/** A token of ours, or any other text that is long enough: an operator may have made it with another tool. Null: neither. */
export function readToken(text: string): Token | null {
  const [, s, id, secret] = /^ph(s?)_([0-9A-Za-z]{16})_([0-9A-Za-z]{32,128})$/.exec(text) ?? []
  if (id !== undefined && secret !== undefined)
    return { kind: s === "" ? "key" : "session", id, secret, isOwn: false }
  if (/^phs?_/.test(text) || !/^[\x21-\x7e]{24,512}$/.test(text)) return null
  const digest = hash("sha256", `posthorn key${text}`, "buffer")
  let name = ""
  for (let i = 0; i < ID_LENGTH; i++) name += ALPHABET[digest[i]! % 62]
  return { kind: "key", id: name, secret: text, isOwn: true }
}

export function digestOf(secret: string): string {
  return hash("sha256", secret, "hex")
}

export function hasDigest(secret: string, digest: string): boolean {
  return isSame(Buffer.from(digestOf(secret)), Buffer.from(digest))
}

/** Takes the same time for equal and different bytes. */
function isSame(given: Uint8Array, kept: Uint8Array): boolean {
  return given.length === kept.length && timingSafeEqual(given, kept)
}

/** A secret whose digest was verified. Comparing with it saves a digest for each request. */
export class Secret {
  readonly #bytes: Uint8Array

  constructor(text: string) {
    this.#bytes = Buffer.from(text)
  }

  is(text: string): boolean {
    return isSame(Buffer.from(text), this.#bytes)
  }
}

/** Bytes of 248 (4 × 62) and above are dropped: they would make the first letters likelier. */
export function randomText(length: number, randomBytes: RandomBytes): string {
  const bytes = new Uint8Array(64)
  let text = ""
  while (text.length < length) {
    randomBytes(bytes)
    for (const byte of bytes) if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
  }
  return text
}
