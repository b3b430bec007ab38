/** A request that a program took in with its own HTTP server. */
import { invalid } from "../core/errors.ts"
import { HEADER_NAME, NOT_IN_A_HEADER } from "../core/header.ts"
import type { HeaderPair } from "../core/inbound-request.ts"
import { refuseUnknown, requireObject, requireText } from "../core/input.ts"
import type { RequestFacts } from "./activity-log.ts"

export interface ReceiveInput {
  readonly method: string
  /** The part of the path behind the source's URL, percent-encoded as it came. Empty by default. */
  readonly path?: string
  /** As it came, with the question mark. Empty by default. */
  readonly query?: string
  /** Pairs keep the case and the order that Node's `rawHeaders` has. */
  readonly headers:
    | Headers
    | readonly HeaderPair[]
    | { readonly [name: string]: string | readonly string[] | undefined }
  /** The raw bytes: signatures are made over them. */
  readonly body: Uint8Array | string
  /** Shown with requests that were refused. */
  readonly remoteAddress?: string
}

const FIELDS = ["method", "path", "query", "headers", "body", "remoteAddress"] as const
const LONGEST_TARGET = 65_536
const MOST_HEADERS = 1000
const LONGEST_HEADERS = 262_144

export interface ParsedReceive {
  readonly facts: RequestFacts
  readonly query: string
  readonly body: Uint8Array
}

export function parseReceive(input: ReceiveInput): ParsedReceive {
  requireObject(input, "request")
  refuseUnknown(input, FIELDS, "")
  const { method, path = "", query = "", body, remoteAddress } = input
  if (!HEADER_NAME.test(requireText(method, "method", 64))) throw invalid("method", "must be an HTTP method")
  if (!/^(\/[\x21-\x7e]*)?$/.test(requireText(path, "path", LONGEST_TARGET)) || path.includes("?"))
    throw invalid("path", "must be empty, or begin with a slash, percent-encoded")
  if (!/^(\?[\x21-\x7e]*)?$/.test(requireText(query, "query", LONGEST_TARGET)))
    throw invalid("query", "must be empty, or begin with a question mark, percent-encoded")
  if (typeof body !== "string" && !(body instanceof Uint8Array))
    throw invalid("body", "must be the raw text or bytes of the request, not what was parsed from it")
  return {
    facts: {
      ...{ method, path, headers: parseHeaders(input.headers) },
      remoteAddress: remoteAddress === undefined ? null : requireText(remoteAddress, "remoteAddress", 64),
    },
    query,
    body: typeof body === "string" ? Buffer.from(body) : body,
  }
}

function parseHeaders(headers: ReceiveInput["headers"]): readonly HeaderPair[] {
  if (typeof headers !== "object" || headers === null) throw invalid("headers", "must be headers")
  const pairs = Array.isArray(headers)
    ? (headers as readonly HeaderPair[])
    : headers instanceof Headers
      ? [...headers]
      : Object.entries(headers).flatMap(([name, value]) =>
          value === undefined ? [] : [value].flat().map((one): HeaderPair => [name, one as string]),
        )
  let length = 0
  for (const [i, pair] of pairs.entries()) {
    const [name, value] = Array.isArray(pair) ? pair : []
    if (typeof name !== "string" || !HEADER_NAME.test(name))
      throw invalid(`headers[${i}]`, "has no header name")
    if (typeof value !== "string" || NOT_IN_A_HEADER.test(value))
      throw invalid(`headers[${i}]`, "must have a text without line breaks or control characters")
    length += name.length + value.length
  }
  if (pairs.length > MOST_HEADERS || length > LONGEST_HEADERS) throw invalid("headers", "are too large")
  return pairs
}
