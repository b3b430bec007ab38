/**
 * Whether a request comes from the provider of a source. A scheme is data, and every refusal costs the same work: a sender learns
 * neither from the answer nor from its time what was wrong.
 */
import { createHmac, hash, timingSafeEqual } from "node:crypto"
import type { HeaderPair } from "./inbound-request.ts"
import { firstHeader, headerOf } from "./received-request.ts"

export const ALGORITHMS = ["sha1", "sha256", "sha512"] as const
export const ENCODINGS = ["hex", "base64"] as const
/** `plain`: one signature. `pairs`: `t=TIME,v1=SIGNATURE,…`. `versions`: `v1,SIGNATURE v1,SIGNATURE …`. */
export const SIGNATURE_FORMATS = ["plain", "pairs", "versions"] as const
/** `base64`: the secret's bytes are the base64 behind `whsec_`, which may be missing. */
export const SECRET_ENCODINGS = ["utf8", "base64"] as const

/** Header names are in lower case. Of several, the first that the request has counts. */
export interface HmacScheme {
  readonly kind: "hmac"
  readonly signatureHeaders: readonly string[]
  readonly format: (typeof SIGNATURE_FORMATS)[number]
  /** In front of the signature; in a list, the name that marks signatures. */
  readonly prefix: string
  readonly algorithm: (typeof ALGORITHMS)[number]
  readonly encoding: (typeof ENCODINGS)[number]
  /** What is signed: a text with `{body}`, and perhaps `{id}` and `{timestamp}`. */
  readonly content: string
  readonly idHeaders: readonly string[]
  /** None for the format `pairs`: its timestamp is in the list. */
  readonly timestampHeaders: readonly string[]
  /** The largest difference between a signed timestamp and now, in both directions. */
  readonly toleranceSeconds: number
  readonly secretEncoding: (typeof SECRET_ENCODINGS)[number]
}

/** The secret itself is in a header. */
export interface TokenScheme {
  readonly kind: "token"
  readonly header: string
  /** In front of the secret, in any case. */
  readonly prefix: string
  /** `base64`: the header has the secret in this form, as basic authentication does. */
  readonly encoding: "plain" | "base64"
}

export type Scheme = HmacScheme | TokenScheme | { readonly kind: "none" }

/** For the operator alone. */
export type VerificationProblem = "missing" | "timestamp" | "mismatch"
/** Null: the request is the provider's. */
export type Verdict = VerificationProblem | null

export interface SignedRequest {
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array
}

/** One request must not make us compare thousands of signatures. */
const MOST_SIGNATURES = 16

/** Any of the secrets may fit, as during a rotation. */
export function verify(
  scheme: Scheme,
  secrets: readonly string[],
  request: SignedRequest,
  nowSeconds: number,
): Verdict {
  switch (scheme.kind) {
    case "none":
      return null
    case "token":
      return verifyToken(scheme, secrets, request)
    case "hmac":
      return verifyHmac(scheme, secrets, request, nowSeconds)
  }
}

function verifyToken(
  { header, prefix, encoding }: TokenScheme,
  secrets: readonly string[],
  { headers }: SignedRequest,
) {
  const value = headerOf(headers, header)
  const isPrefixed = value?.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase()
  const given = digest(isPrefixed ? value!.slice(prefix.length) : "")
  let fits = false
  for (const secret of secrets) {
    const expected = encoding === "plain" ? secret : Buffer.from(secret).toString("base64")
    // Digests have one length: the time does not tell how long the secret is.
    fits = timingSafeEqual(given, digest(expected)) || fits
  }
  if (!isPrefixed) return "missing"
  return fits ? null : "mismatch"
}

function verifyHmac(
  scheme: HmacScheme,
  secrets: readonly string[],
  { headers, body }: SignedRequest,
  nowSeconds: number,
): Verdict {
  const { content, algorithm, encoding, idHeaders, timestampHeaders, toleranceSeconds } = scheme
  const list = readSignatures(scheme, firstHeader(headers, scheme.signatureHeaders) ?? "")
  const id = firstHeader(headers, idHeaders)
  const timestamp = scheme.format === "pairs" ? list.timestamp : firstHeader(headers, timestampHeaders)
  const values: { readonly [name: string]: string | undefined } = { id, timestamp }
  const fill = (part: string) => part.replace(/\{(id|timestamp)\}/g, (_, name) => values[name] ?? "")
  const [before = "", after = ""] = content.split("{body}")
  const [prefix, suffix] = [fill(before), fill(after)]
  const candidates = list.signatures.length === 0 ? [""] : list.signatures
  let fits = false
  for (const secret of secrets) {
    const hmac = createHmac(algorithm, keyOf(secret, scheme)).update(prefix).update(body).update(suffix)
    const expected = hmac.digest(encoding)
    for (const signature of candidates) fits = isSame(signature, expected) || fits
  }
  const isMissing = (wanted: string, value: string | undefined) =>
    content.includes(wanted) && value === undefined
  if (list.signatures.length === 0 || isMissing("{id}", id) || isMissing("{timestamp}", timestamp))
    return "missing"
  if (content.includes("{timestamp}") && !isRecent(timestamp!, nowSeconds, toleranceSeconds))
    return "timestamp"
  return fits ? null : "mismatch"
}

interface Signatures {
  readonly signatures: readonly string[]
  readonly timestamp: string | undefined
}

function readSignatures({ format, prefix, encoding }: HmacScheme, header: string): Signatures {
  const [separator, mark] = format === "versions" ? [" ", ","] : [",", "="]
  const pairs =
    format === "plain"
      ? header.startsWith(prefix)
        ? [[prefix, header.slice(prefix.length)]]
        : []
      : header.split(separator).map((pair) => splitAt(pair.trim(), mark))
  const signatures = pairs.flatMap(([name, value]) => (name === prefix && value ? [value] : []))
  return {
    signatures: signatures
      .slice(0, MOST_SIGNATURES)
      .map((one) => (encoding === "hex" ? one.toLowerCase() : one)),
    timestamp: pairs.find(([name]) => name === "t")?.[1],
  }
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)]
}

function isRecent(timestamp: string, nowSeconds: number, toleranceSeconds: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(nowSeconds - Number(timestamp)) <= toleranceSeconds
}

function keyOf(secret: string, { secretEncoding }: HmacScheme): string | Buffer {
  return secretEncoding === "utf8" ? secret : Buffer.from(secret.replace(/^whsec_/, ""), "base64")
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer")
}

/** The length of a signature is no secret. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
