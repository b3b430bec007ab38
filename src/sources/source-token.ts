/** The token in a source's URL: the source's id without its prefix, which finds it, and a secret. */
import type { RandomBytes } from "../core/ids.ts"
import { randomText } from "../resources/key-token.ts"

export const SOURCE_PATH = "/in/"

const PREFIX = "src_"
const SECRET_LENGTH = 32

export interface SourceToken {
  readonly sourceId: string
  readonly secret: string
}

export function makeSourceSecret(randomBytes: RandomBytes): string {
  return randomText(SECRET_LENGTH, randomBytes)
}

export function writeSourceToken({ sourceId, secret }: SourceToken): string {
  return sourceId.slice(PREFIX.length) + secret
}

/** Null for a text that is none: the store is not asked. */
export function readSourceToken(text: string): SourceToken | null {
  const [, id, secret] = /^([0-9A-Za-z]{27})([0-9A-Za-z]{32})$/.exec(text) ?? []
  return id === undefined ? null : { sourceId: PREFIX + id, secret: secret! }
}
