/** A webhook's request as text for a terminal. Its bytes are a stranger's: none of them can drive the terminal. */
import { isUtf8 } from "node:buffer"
import type { AgentEvent } from "../../agent/event.ts"
import { printable } from "../../core/text.ts"

/** Of a text. */
const MOST_SHOWN = 65_536
/** Of bytes that are not text. */
const MOST_HEX = 32

export function requestLines({ method, path, query, headers, body }: AgentEvent): string[] {
  const target = `${path === "" ? "/" : path}${query}`
  return [
    printable(`${method} ${target}`),
    ...headers.map(([name, value]) => printable(`${name}: ${value}`)),
    "",
    ...bodyLines(body),
  ]
}

export function bodyLines(body: Uint8Array): string[] {
  const size = sizeText(body.length)
  if (body.length === 0) return ["(no body)"]
  if (!isText(body)) {
    const hex = Buffer.from(body.subarray(0, MOST_HEX))
      .toString("hex")
      .replaceAll(/..(?=.)/g, "$& ")
    return [`(${size}, not text: ${hex}${body.length > MOST_HEX ? " …" : ""})`]
  }
  // A character that the limit cuts in two is left out.
  const text = new TextDecoder().decode(body.subarray(0, MOST_SHOWN), { stream: true })
  const lines = text.split(/\r?\n/).map((line) => line.split("\t").map(printable).join("\t"))
  return body.length > MOST_SHOWN ? [...lines, `(the first ${sizeText(MOST_SHOWN)} of ${size})`] : lines
}

/** Text has no null characters. */
function isText(body: Uint8Array): boolean {
  return isUtf8(body) && !body.includes(0)
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  const [size, unit] = bytes < 1_048_576 ? [bytes / 1024, "KiB"] : [bytes / 1_048_576, "MiB"]
  return `${Number(size.toFixed(1))} ${unit}`
}
