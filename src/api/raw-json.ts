/**
 * JSON text inside a response, written as it was. Parsing and serializing a payload again would round large numbers, or keep them at the
 * cost of a callback for each value: a page of 50 payloads of 1 MB stopped the event loop for 46 s.
 */
import { randomUUID } from "node:crypto"

/** Stands for a text while the response is serialized. Random, so that no text of a stranger contains it. */
const MARK = randomUUID()
const MARK_JSON = JSON.stringify(MARK)

/** The texts of the response that is being serialized; null outside of `serialize`. */
let texts: string[] | null = null

export class RawJson {
  readonly #text: string

  /** The text must be valid JSON. */
  constructor(text: string) {
    this.#text = text
  }

  toJSON(): unknown {
    if (texts === null) return JSON.parse(this.#text)
    texts.push(this.#text)
    return MARK
  }
}

/** As `JSON.stringify`, with the texts of `RawJson` as they are. */
export function serialize(value: unknown): string {
  const found: string[] = []
  texts = found
  try {
    const [first = "", ...rest] = JSON.stringify(value).split(MARK_JSON)
    return first + rest.map((piece, i) => found[i] + piece).join("")
  } finally {
    texts = null
  }
}
