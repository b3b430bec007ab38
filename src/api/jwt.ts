/** Svix's tokens: JWTs signed with a secret that the operator has set. */
import type { JWTPayload } from "jose"
import type { Clock } from "../core/clock.ts"
import { describe, invalid } from "../core/errors.ts"
import { type Caller, callerFromClaims, unauthenticated } from "./caller.ts"

export interface JwtSettings {
  /** For RS… and EdDSA the public key, in PEM. */
  readonly secret: string
  readonly algorithm: string
}

export type TokenReader = (token: string) => Promise<Caller>

/** As long as the shortest hash: a shorter secret can be guessed from one token. */
const LEAST_SECRET_BYTES = 32

/** Clocks of two machines may differ by so much. */
const TOLERANCE_SECONDS = 5

/** The package is loaded here, so that whoever does not use tokens does not wait for it. */
export async function tokenReader({ secret, algorithm }: JwtSettings, clock: Clock): Promise<TokenReader> {
  const jose = await import("jose")
  const key = algorithm.startsWith("HS")
    ? await sharedKey(secret, algorithm)
    : await jose.importSPKI(secret, algorithm).catch((error) => {
        throw invalid("jwtSecret", `must be a public key in PEM for ${algorithm}: ${describe(error)}`)
      })
  return async (token) => {
    let claims: JWTPayload
    try {
      const options = {
        algorithms: [algorithm],
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: new Date(clock.wallNow()),
      }
      claims = (await jose.jwtVerify(token, key, options)).payload
    } catch (error) {
      const expired = error instanceof jose.errors.JWTExpired
      throw unauthenticated(expired ? "The token has expired" : "Invalid token")
    }
    return callerFromClaims(claims)
  }
}

/** Made once: from the bare secret, every token would take three times as long. */
function sharedKey(secret: string, algorithm: string) {
  const bytes = new TextEncoder().encode(secret)
  if (bytes.length < LEAST_SECRET_BYTES)
    throw invalid("jwtSecret", `must be at least ${LEAST_SECRET_BYTES} bytes of text for ${algorithm}`)
  const hash = `SHA-${algorithm.slice(2)}`
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash }, false, ["verify"])
}
