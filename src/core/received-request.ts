/** A request that a source got, and the texts that its settings point at: a header, or a place in its JSON body. */
import type { HeaderPair } from "./inbound-request.ts"
import { readPointer } from "./json-pointer.ts"

export interface ReceivedRequest {
  readonly method: string
  /** As `InboundRequest` has them. */
  readonly path: string
  readonly query: string
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array
  /** The parsed body; undefined if it is not JSON. */
  json(): unknown
}

/** The body is parsed once, if at all. */
export function receivedRequest(parts: Omit<ReceivedRequest, "json">): ReceivedRequest {
  let parsed: { readonly value: unknown } | null = null
  return {
    ...parts,
    json() {
      parsed ??= { value: parseJson(parts.body) }
      return parsed.value
    },
  }
}

/** Where a text of a request is: the name of a header in lower case, or a JSON pointer into the body. */
export type Place =
  | { readonly header: string; readonly pointer?: undefined }
  | { readonly pointer: string; readonly header?: undefined }

/** The first header of this name; its name in lower case. */
export function headerOf(headers: readonly HeaderPair[], name: string): string | undefined {
  return headers.find(([given]) => given.length === name.length && given.toLowerCase() === name)?.[1]
}

/** The first of these headers that the request has. */
export function firstHeader(headers: readonly HeaderPair[], names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headerOf(headers, name)
    if (value !== undefined) return value
  }
  return undefined
}

/** Undefined where there is no text and no number. A number that JSON.parse may have rounded, as it does with ids of 19 digits, is none. */
export function textAt(request: ReceivedRequest, place: Place): string | undefined {
  if (place.header !== undefined) return headerOf(request.headers, place.header)
  const found = readPointer(request.json(), place.pointer)
  if (typeof found === "string") return found.isWellFormed() ? found : undefined
  const isExact = typeof found === "number" && (Number.isSafeInteger(found) || !Number.isInteger(found))
  return isExact ? String(found) : undefined
}

function parseJson({ buffer, byteOffset, byteLength }: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(buffer, byteOffset, byteLength).toString("utf8"))
  } catch {
    return undefined
  }
}
