/** Parses how the requests of a source are verified, and its secrets. */
import { invalid } from "./errors.ts"
import { HEADER_NAME } from "./header.ts"
import {
  ifGiven,
  optionalOneOf,
  refuseUnknown,
  requireObject,
  requireOneOf,
  requireText,
  wholeNumber,
} from "./input.ts"
import { ALGORITHMS, ENCODINGS, SECRET_ENCODINGS, SIGNATURE_FORMATS } from "./verification.ts"
import {
  HMAC_DEFAULTS,
  type HmacFields,
  READY_SCHEMES,
  SCHEME_NAMES,
  type SchemeName,
  schemeOf,
  type Verification,
} from "./verification-schemes.ts"

/** The name of a ready scheme, or fields: `scheme` alone, those of `hmac` or `token`, or another tolerance of a scheme with timestamps. */
export type VerificationInput =
  | Exclude<SchemeName, "hmac" | "token">
  | ({ readonly scheme: SchemeName } & Partial<HmacFields>)

const LONGEST_SECRET = 512
const LONGEST_TOLERANCE_SECONDS = 86_400

export function parseVerification(input: unknown, at = "verification"): Verification {
  if (typeof input === "string") return { scheme: requireOneOf(input, at, READY_SCHEMES) }
  requireObject(input, at)
  const given = input as Partial<HmacFields> & { readonly scheme: SchemeName }
  const scheme = requireOneOf(given.scheme, `${at}.scheme`, SCHEME_NAMES)
  if (scheme === "hmac") return parseHmac(given, at)
  if (scheme === "token") {
    refuseUnknown(given, ["scheme", "header", "prefix"], at)
    const prefix = requireText(given.prefix ?? "", `${at}.prefix`, 64)
    return { scheme, header: requireHeaderName(given.header, `${at}.header`), prefix }
  }
  const ready = schemeOf({ scheme })
  const hasTimestamp = ready.kind === "hmac" && ready.content.includes("{timestamp}")
  refuseUnknown(given, hasTimestamp ? ["scheme", "toleranceSeconds"] : ["scheme"], at)
  const toleranceSeconds = ifGiven(given.toleranceSeconds, `${at}.toleranceSeconds`, requireTolerance)
  return toleranceSeconds === undefined ? { scheme } : { scheme, toleranceSeconds }
}

function parseHmac(given: Partial<HmacFields>, at: string): Verification {
  refuseUnknown(given, ["scheme", "header", "idHeader", "timestampHeader", ...Object.keys(HMAC_DEFAULTS)], at)
  const field = (name: string) => `${at}.${name}`
  const idHeader = ifGiven(given.idHeader, field("idHeader"), requireHeaderName)
  const timestampHeader = ifGiven(given.timestampHeader, field("timestampHeader"), requireHeaderName)
  const fields: HmacFields = {
    header: requireHeaderName(given.header, field("header")),
    format: optionalOneOf(given.format, field("format"), SIGNATURE_FORMATS) ?? HMAC_DEFAULTS.format,
    prefix: requireText(given.prefix ?? HMAC_DEFAULTS.prefix, field("prefix"), 64),
    algorithm: optionalOneOf(given.algorithm, field("algorithm"), ALGORITHMS) ?? HMAC_DEFAULTS.algorithm,
    encoding: optionalOneOf(given.encoding, field("encoding"), ENCODINGS) ?? HMAC_DEFAULTS.encoding,
    content: requireText(given.content ?? HMAC_DEFAULTS.content, field("content"), 256),
    secretEncoding:
      optionalOneOf(given.secretEncoding, field("secretEncoding"), SECRET_ENCODINGS) ??
      HMAC_DEFAULTS.secretEncoding,
    toleranceSeconds: requireTolerance(
      given.toleranceSeconds ?? HMAC_DEFAULTS.toleranceSeconds,
      field("toleranceSeconds"),
    ),
    ...(idHeader === undefined ? {} : { idHeader }),
    ...(timestampHeader === undefined ? {} : { timestampHeader }),
  }
  requireContent(fields, field)
  // The default is shown with every source, and may come back.
  const isSet = fields.toleranceSeconds !== HMAC_DEFAULTS.toleranceSeconds
  if (isSet && !fields.content.includes("{timestamp}"))
    throw invalid(field("toleranceSeconds"), "needs a {timestamp} in the signed content")
  return { scheme: "hmac", ...fields }
}

/** Every part of the signed content has a place that it comes from, and is used. */
function requireContent(fields: HmacFields, field: (name: string) => string): void {
  const { content, format, prefix, idHeader, timestampHeader } = fields
  const times = (part: string) => content.split(part).length - 1
  if (times("{body}") !== 1) throw invalid(field("content"), "must have {body} once")
  if (format !== "plain" && prefix === "")
    throw invalid(field("prefix"), `must name the signatures in a list of the format ${format}, such as v1`)
  if (times("{id}") !== (idHeader === undefined ? 0 : 1))
    throw invalid(field("content"), "must have {id} once if there is an idHeader, and else not")
  const hasTimestamp = timestampHeader !== undefined || format === "pairs"
  if (timestampHeader !== undefined && format === "pairs")
    throw invalid(
      field("timestampHeader"),
      "cannot be given with the format pairs, whose list has the time as t",
    )
  if (times("{timestamp}") > 1 || (times("{timestamp}") === 1) !== hasTimestamp)
    throw invalid(
      field("content"),
      "must have {timestamp} once if there is a timestampHeader or the format is pairs, and else not",
    )
}

function requireTolerance(value: unknown, field: string): number {
  return wholeNumber(value, field, 1, LONGEST_TOLERANCE_SECONDS)
}

/** In lower case. */
export function requireHeaderName(value: unknown, field: string): string {
  if (typeof value !== "string" || value.length > 128 || !HEADER_NAME.test(value))
    throw invalid(field, "must be the name of a header")
  return value.toLowerCase()
}

/** A secret that the scheme can verify with. */
export function requireSecret(value: unknown, verification: Verification, field = "secret"): string {
  const scheme = schemeOf(verification)
  if (scheme.kind === "none") throw invalid(field, "cannot be given: the scheme none has no secret")
  const secret = requireText(value, field, LONGEST_SECRET)
  if (secret === "") throw invalid(field, "must not be empty")
  if (verification.scheme === "basic") {
    if (!/^[^:]+:/.test(secret)) throw invalid(field, "must be USER:PASSWORD")
  } else if (scheme.kind === "token" && /[^\x21-\x7e]/.test(secret)) {
    throw invalid(field, "must be visible ASCII: it comes in a header")
  }
  if (scheme.kind === "hmac" && scheme.secretEncoding === "base64") {
    const encoded = secret.replace(/^whsec_/, "")
    if (!/^[A-Za-z0-9+/]{4,}={0,2}$/.test(encoded))
      throw invalid(field, "must be whsec_ and base64, as the provider shows it")
  }
  return secret
}
