/** The original bytes of a JSON field: parsing and serializing again could change numbers and texts. */

const [QUOTE, BACKSLASH, COMMA, COLON, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] =
  Buffer.from('"\\,:[]{}')

/** Of duplicate names the last one, as JSON.parse does; null if there is none. The text must be valid JSON. */
export function rawField(json: Buffer, name: string): Buffer | null {
  let at = json.indexOf(OPEN_OBJECT!) + 1
  let found: Buffer | null = null
  while (at > 0 && at < json.length) {
    const keyFrom = json.indexOf(QUOTE!, at)
    if (keyFrom < 0) break
    const keyTo = endOfText(json, keyFrom)
    const from = skipSpace(json, json.indexOf(COLON!, keyTo) + 1)
    const to = endOfValue(json, from)
    if (JSON.parse(json.toString("utf8", keyFrom, keyTo)) === name) found = json.subarray(from, to)
    at = skipSpace(json, to)
    if (json[at] !== COMMA) break
    at++
  }
  return found
}

/** The original bytes of each item. The text must be a valid JSON list. */
export function rawItems(json: Buffer): Buffer[] {
  const items: Buffer[] = []
  let at = skipSpace(json, json.indexOf(OPEN_LIST!) + 1)
  while (at < json.length && json[at] !== CLOSE_LIST) {
    const to = endOfValue(json, at)
    items.push(json.subarray(at, to))
    at = skipSpace(json, to)
    if (json[at] === COMMA) at = skipSpace(json, at + 1)
  }
  return items
}

/** The position after the closing quote, or the end of the text. */
export function endOfText(json: Buffer, from: number): number {
  for (let at = from; ; ) {
    at = json.indexOf(QUOTE!, at + 1)
    if (at === -1) return json.length
    let backslashes = 0
    while (json[at - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at + 1
  }
}

function endOfValue(json: Buffer, from: number): number {
  const first = json[from]
  if (first === QUOTE) return endOfText(json, from)
  let at = from
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) {
    while (at < json.length && !isEnd(json[at]!)) at++
    return at
  }
  let depth = 0
  do {
    const byte = json[at]
    if (byte === QUOTE) {
      at = endOfText(json, at)
      continue
    }
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--
    at++
  } while (depth > 0)
  return at
}

function isEnd(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_LIST || isSpace(byte)
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function skipSpace(json: Buffer, from: number): number {
  let at = from
  while (at < json.length && isSpace(json[at]!)) at++
  return at
}
