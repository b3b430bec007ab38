/** Parses the input that creates or changes a source. */
import { invalid } from "../core/errors.ts"
import { HANDSHAKES, type Handshake } from "../core/handshake.ts"
import {
  optionalWholeNumber,
  parseFields,
  refuseUnknown,
  requireBoolean,
  requireName,
  requireObject,
  requireOneOf,
  requireText,
  wholeNumber,
} from "../core/input.ts"
import { JSON_POINTER } from "../core/json-pointer.ts"
import { parseVerification, requireHeaderName, type VerificationInput } from "../core/parse-verification.ts"
import type { Place } from "../core/received-request.ts"
import type { Deduplication, SourceSettings } from "./source-record.ts"

export interface SourceInput {
  name: string
  description?: string
  /** An event type, or where in each request it is; null, the default: `inbound.NAME`. */
  eventType?: string | Place | null
  /** How requests are verified: the name of a scheme, or fields, see docs/relay.md. */
  verification: VerificationInput
  /** What the provider signs with. Kept encrypted and never shown again. Required by all schemes but `none`. */
  secret?: string
  /** The provider's request that asks whether somebody reads the URL. By default that of the scheme `slack`, else none. */
  handshake?: HandshakeInput | null
  /** Where the provider's id of a delivery is, for duplicates. By default where the scheme has it. */
  deduplication?: Deduplication
  /** Requests per second, of each process. 1000. */
  rateLimit?: number
  /** The largest body. By default, and at most, `maxPayloadBytes`. */
  maxBytes?: number | null
  /** False: the URL is answered as if it did not exist. */
  enabled?: boolean
}

export interface HandshakeInput {
  readonly kind: Handshake
  /** Of `meta`: the text that was entered there too. Kept encrypted and never shown again. */
  readonly verifyToken?: string
}

export interface ParsedSource {
  readonly settings: Partial<SourceSettings>
  readonly handshake: HandshakeInput | null | undefined
}

export const SOURCE_DEFAULTS = {
  description: "",
  eventType: null,
  deduplication: "scheme",
  rateLimit: 1000,
  maxBytes: null,
  enabled: true,
} as const satisfies Partial<SourceSettings>

/** Room for `inbound.` in front. */
const LONGEST_NAME = 248
const MOST_PER_SECOND = 100_000
const MOST_BYTES = 67_108_864

/** The secret is checked against the verification that holds in the end. */
export function parseSource(input: Partial<SourceInput>): ParsedSource {
  requireObject(input, "source")
  const settings = parseFields<SourceSettings>(
    input,
    {
      name: requireSourceName,
      description: (value, field) => requireText(value, field, 4096),
      eventType: (value, field) =>
        value === null
          ? null
          : typeof value === "string"
            ? requireName(value, field)
            : requirePlace(value, field),
      verification: parseVerification,
      deduplication: (value, field) =>
        typeof value === "string"
          ? requireOneOf(value, field, ["scheme", "off"] as const)
          : requirePlace(value, field),
      rateLimit: (value, field) => wholeNumber(value, field, 1, MOST_PER_SECOND),
      maxBytes: (value, field) => optionalWholeNumber(value, field, 1, MOST_BYTES),
      enabled: requireBoolean,
    },
    ["secret", "handshake"],
  )
  return { settings, handshake: parseHandshake(input.handshake) }
}

function requireSourceName(value: unknown, field: string): string {
  const name = requireName(value, field, LONGEST_NAME)
  if (name.startsWith("src_")) throw invalid(field, "must not start with src_")
  return name
}

function requirePlace(value: unknown, field: string): Place {
  requireObject(value, field)
  const { header, pointer } = value as Partial<Place>
  refuseUnknown(value as object, ["header", "pointer"], field)
  if ((header === undefined) === (pointer === undefined))
    throw invalid(field, "must have a header, or a pointer into the JSON body")
  if (header !== undefined) return { header: requireHeaderName(header, `${field}.header`) }
  if (typeof pointer !== "string" || pointer.length > 256 || !JSON_POINTER.test(pointer))
    throw invalid(`${field}.pointer`, "must be a JSON pointer such as /data/id, of at most 256 characters")
  return { pointer }
}

function parseHandshake(input: unknown): HandshakeInput | null | undefined {
  if (input === undefined || input === null) return input
  requireObject(input, "handshake")
  const { kind, verifyToken } = input as Partial<HandshakeInput>
  requireOneOf(kind, "handshake.kind", HANDSHAKES)
  refuseUnknown(input, kind === "meta" ? ["kind", "verifyToken"] : ["kind"], "handshake")
  if (verifyToken === undefined) return { kind: kind! }
  if (verifyToken === "") throw invalid("handshake.verifyToken", "must not be empty")
  return { kind: kind!, verifyToken: requireText(verifyToken, "handshake.verifyToken", 512) }
}
