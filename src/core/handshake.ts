/** The requests by which providers ask whether somebody reads a new URL, and their answers. */
import { hash, timingSafeEqual } from "node:crypto"
import type { ReceivedRequest } from "./received-request.ts"

export const HANDSHAKES = ["slack", "meta", "microsoft-graph"] as const
export type Handshake = (typeof HANDSHAKES)[number]

/** A longer text of a stranger is not repeated. */
const LONGEST_CHALLENGE = 2048

/** Null: an ordinary request. `answer`: repeated as plain text; null: refused. */
export type HandshakeRequest = { readonly answer: string | null } | null

/** Before verification: these requests are not signed. Meta's has a token of the operator's instead. */
export function unsignedHandshake(
  handshake: Handshake | null,
  { method, query }: ReceivedRequest,
  verifyToken: string | null,
): HandshakeRequest {
  if (handshake === "microsoft-graph") {
    const token = new URLSearchParams(query).get("validationToken")
    return token === null ? null : { answer: bounded(token) }
  }
  if (handshake !== "meta" || method !== "GET") return null
  const parameters = new URLSearchParams(query)
  if (parameters.get("hub.mode") !== "subscribe") return null
  const fits = isSame(parameters.get("hub.verify_token") ?? "", verifyToken ?? "")
  return { answer: fits && verifyToken !== null ? bounded(parameters.get("hub.challenge") ?? "") : null }
}

/** After verification. */
export function signedHandshake(handshake: Handshake | null, request: ReceivedRequest): HandshakeRequest {
  if (handshake !== "slack" || request.body.length > 2 * LONGEST_CHALLENGE) return null
  const { type, challenge } = (request.json() ?? {}) as { readonly [field: string]: unknown }
  if (type !== "url_verification") return null
  return { answer: typeof challenge === "string" ? bounded(challenge) : null }
}

function bounded(challenge: string): string | null {
  return challenge === "" || challenge.length > LONGEST_CHALLENGE ? null : challenge
}

/** Digests have one length: the time does not tell how long the token is. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", expected, "buffer"))
}
