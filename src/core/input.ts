/** Checks the input of callers before anything is written. Every error names the field. */
import { type Bytes, bytesOfText, copyOfBytes } from "./bytes.ts"
import { invalid, PosthornError } from "./errors.ts"
import { HEADER_NAME, NOT_IN_A_HEADER } from "./header.ts"
import type { IdPrefix } from "./ids.ts"

const NAME = /^[a-zA-Z0-9\-_.]+$/

export function requireObject(value: unknown, field: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(field, "must be an object")
}

export function refuseUnknown(input: object, known: readonly string[], at: string): void {
  for (const field of Object.keys(input)) {
    if (!known.includes(field)) {
      throw invalid(at === "" ? field : `${at}.${field}`, `is unknown; known are ${known.join(", ")}`)
    }
  }
}

export type Check<T> = (value: unknown, field: string) => T

/** Checks the fields that are given. A field that has no check and is not in `others` is refused. */
export function parseFields<P>(
  input: object,
  checks: { readonly [F in keyof P]: Check<P[F]> },
  others: readonly string[] = [],
): Partial<P> {
  refuseUnknown(input, [...Object.keys(checks), ...others], "")
  const patch: Partial<P> = {}
  for (const field in checks) {
    const value = (input as { readonly [field: string]: unknown })[field]
    if (value !== undefined) patch[field] = checks[field](value, field)
  }
  return patch
}

export function ifGiven<T>(value: unknown, field: string, check: Check<T>): T | undefined {
  return value === undefined ? undefined : check(value, field)
}

export function requireOneOf<T extends string | number>(
  value: unknown,
  field: string,
  known: readonly T[],
): T {
  if (!known.includes(value as T)) throw invalid(field, `must be one of ${known.join(", ")}`)
  return value as T
}

export function optionalOneOf<T extends string | number>(
  value: unknown,
  field: string,
  known: readonly T[],
): T | undefined {
  return value === undefined ? undefined : requireOneOf(value, field, known)
}

/** A uid, event type, channel or key name. */
export function requireName(value: unknown, field: string, longest = 256): string {
  if (typeof value !== "string" || value.length === 0 || value.length > longest || !NAME.test(value)) {
    throw invalid(field, `must be 1 to ${longest} of the characters a-z A-Z 0-9 - _ .`)
  }
  return value
}

/** A channel may also have : and +. */
export function requireChannel(value: unknown, field: string): string {
  if (typeof value !== "string" || !/^[a-zA-Z0-9\-_.:+]{1,128}$/.test(value))
    throw invalid(field, "must be 1 to 128 of the characters a-z A-Z 0-9 - _ . : +")
  return value
}

/** A tag may also have / \\ and #. */
export function requireTag(value: unknown, field: string): string {
  if (typeof value !== "string" || !/^[a-zA-Z0-9\-_./\\#]{1,128}$/.test(value))
    throw invalid(field, "must be 1 to 128 of the characters a-z A-Z 0-9 - _ . / \\ #")
  return value
}

export function optionalName(value: unknown, field: string, longest = 256): string | null {
  return value === undefined || value === null ? null : requireName(value, field, longest)
}

/** An id of the caller's own, which must not look like one of ours. */
export function optionalUid(value: unknown, field: string, prefix: IdPrefix): string | null {
  const uid = optionalName(value, field)
  if (uid?.startsWith(`${prefix}_`)) throw invalid(field, `must not start with ${prefix}_`)
  return uid
}

export function requireText(value: unknown, field: string, longest: number): string {
  if (typeof value !== "string" || value.length > longest)
    throw invalid(field, `must be a text of at most ${longest} characters`)
  return value
}

export function nameList(
  value: unknown,
  field: string,
  most: number,
  requireEntry: (entry: unknown, field: string) => string = requireName,
): readonly string[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value) || value.length === 0 || value.length > most) {
    throw invalid(field, `must be a list of 1 to ${most} names, or left out for all`)
  }
  return [...new Set(value.map((entry, i) => requireEntry(entry, `${field}[${i}]`)))]
}

/** `schemes` as `URL.protocol` writes them: `["http:", "https:"]`. */
export function requireUrl(value: unknown, schemes: readonly string[], field = "url"): string {
  const url = typeof value === "string" && value.length <= 4096 ? URL.parse(value) : null
  if (url === null || !schemes.includes(url.protocol)) throw invalid(field, fullAddress(schemes))
  if (url.username !== "" || url.password !== "")
    throw invalid(field, "must not carry a user name or password; use headers")
  if (url.port === "0") throw invalid(field, "must not use port 0")
  url.hash = ""
  return url.href
}

/** The refusal of a URL that cannot be parsed or has another scheme. */
export function fullAddress(schemes: readonly string[]): string {
  const [last, ...others] = schemes.map((scheme) => `${scheme}//`).reverse()
  return `must be a full ${others.length === 0 ? last : `${others.reverse().join(", ")} or ${last}`} address`
}

export function requireNumber(value: unknown, field: string, least: number, most: number): number {
  if (typeof value === "number" && value >= least && value <= most) return value
  throw invalid(field, `must be a number between ${least} and ${most}`)
}

export function wholeNumber(value: unknown, field: string, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value
  throw invalid(field, `must be a whole number between ${least} and ${most}`)
}

export function optionalWholeNumber(
  value: unknown,
  field: string,
  least: number,
  most: number,
): number | null {
  return value === undefined || value === null ? null : wholeNumber(value, field, least, most)
}

export function requireBoolean(value: unknown, field: string): boolean {
  if (typeof value !== "boolean") throw invalid(field, "must be true or false")
  return value
}

/** A Date, or milliseconds since 1970. */
export function requireTime(value: unknown, field: string): number {
  const ms = value instanceof Date ? value.getTime() : value
  // Year 9999 is the last that an ISO text of fixed width can show.
  if (typeof ms !== "number" || !Number.isFinite(ms) || ms < 0 || ms > 253_402_300_799_000) {
    throw invalid(field, "must be a Date or milliseconds since 1970")
  }
  return Math.round(ms)
}

const LONGEST_DELAY_SECONDS = 3650 * 86_400

/** A delay in seconds, as milliseconds. */
export function requireDelayMs(seconds: unknown, field: string): number {
  if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= LONGEST_DELAY_SECONDS))
    throw invalid(field, `must be a number of seconds between 0 and ${LONGEST_DELAY_SECONDS} (3650 days)`)
  return Math.round(seconds * 1000)
}

/** A flat object of texts. */
export function requireMetadata(value: unknown, field: string): { readonly [key: string]: string } {
  if (value === undefined) return {}
  requireObject(value, field)
  const entries = Object.entries(value as object)
  if (entries.length > 50) throw invalid(field, "must have at most 50 entries")
  for (const [key, entry] of entries) requireText(entry, `${field}.${key}`, 4096)
  return Object.fromEntries(entries) as { [key: string]: string }
}

export const MOST_HEADERS = 50
const RESERVED_HEADERS = new Set(
  (
    "host content-length transfer-encoding connection te trailer upgrade expect keep-alive " +
    "idempotency-key accept-encoding"
  ).split(" "),
)

/** Svix refuses these too: its own headers, and headers that proxies of the large clouds add and trust. */
const FOREIGN_HEADERS = /^x-(svix|amzn?|goog(le)?|gfe|azure|fd)-/

/** Custom headers of an endpoint, with the case of their names. Headers that Posthorn sets itself are refused. */
export function requireHeaders(value: unknown, field: string): { readonly [name: string]: string } {
  if (value === undefined) return {}
  requireObject(value, field)
  const headers = Object.entries(value as object)
  const names = new Set<string>()
  for (const [given, text] of headers) {
    const name = given.toLowerCase()
    if (!HEADER_NAME.test(given)) throw invalid(`${field}.${given}`, "is not a header name")
    if (names.has(name)) throw invalid(`${field}.${given}`, "is given twice; case makes no difference")
    names.add(name)
    if (RESERVED_HEADERS.has(name) || /^(proxy|webhook|svix)-/.test(name)) {
      throw invalid(`${field}.${given}`, "is set by Posthorn and cannot be replaced")
    }
    if (FOREIGN_HEADERS.test(name))
      throw invalid(`${field}.${given}`, "begins with the name of a service that sets such headers itself")
    if (typeof text !== "string" || text.length > 8192 || NOT_IN_A_HEADER.test(text)) {
      throw invalid(`${field}.${given}`, "must be a text without line breaks or control characters")
    }
  }
  if (headers.length > MOST_HEADERS) throw invalid(field, `must have at most ${MOST_HEADERS} entries`)
  return Object.fromEntries(headers)
}

export interface PayloadBytes {
  readonly bytes: Bytes
  readonly contentType: string
}

/** A JSON value is serialised once, here: the bytes that are stored are also signed and sent. */
export function payloadBytes(
  payload: unknown,
  contentType: unknown,
  mostBytes: number,
  field: (name: string) => string,
): PayloadBytes {
  const raw = rawBytes(payload)
  const bytes = raw ?? bytesOfText(jsonOf(payload, field("payload")))
  if (bytes.length > mostBytes) {
    throw new PosthornError(
      "payload_too_large",
      `payload is ${bytes.length} bytes, more than the limit of ${mostBytes} (maxPayloadBytes, POSTHORN_MAX_PAYLOAD_BYTES)`,
      { field: field("payload") },
    )
  }
  const fallback = raw !== null ? "application/octet-stream" : "application/json"
  const type = requireText(contentType ?? fallback, field("contentType"), 255)
  if (!/^[\x20-\x7e]+\/[\x20-\x7e]+$/.test(type))
    throw invalid(field("contentType"), "must be a media type such as application/json")
  return { bytes, contentType: type }
}

function rawBytes(payload: unknown): Bytes | null {
  if (payload instanceof ArrayBuffer) return copyOfBytes(new Uint8Array(payload))
  return ArrayBuffer.isView(payload) ? copyOfBytes(payload) : null
}

function jsonOf(payload: unknown, field: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(payload)
  } catch (cause) {
    const problem = "payload cannot be written as JSON (is it cyclic, or does it hold a BigInt?)"
    throw new PosthornError("invalid_input", problem, { field, cause })
  }
  if (text === undefined) throw invalid(field, "must be a JSON value or bytes")
  return text
}
