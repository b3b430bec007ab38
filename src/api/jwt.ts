/** Svix's tokens: JWTs signed with the operator's secret. */
import type { JWTPayload } from "jose"
import type { Clock } from "../core/clock.ts"
import { describe, invalid } from "../core/errors.ts"
import { type Caller, callerFromClaims, unauthenticated } from "./caller.ts"

export interface JwtSettings {
  /** For RS… and EdDSA the public key as PEM. */
  readonly secret: string
  readonly algorithm: string
}

export type TokenReader = (token: string) => Promise<Caller>

/** The length of the shortest hash: a shorter secret can be guessed from one token. */
const LEAST_SECRET_BYTES = 32

/** Allowed difference between the clocks of two machines. */
const TOLERANCE_SECONDS = 5

/** Loads the package lazily: most servers use no tokens. */
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

/** Imported once: verifying with the bare secret takes three times as long. */
function sharedKey(secret: string, algorithm: string) {
  const bytes = new TextEncoder().encode(secret)
  if (bytes.length < LEAST_SECRET_BYTES)
    throw invalid("jwtSecret", `must be at least ${LEAST_SECRET_BYTES} bytes of text for ${algorithm}`)
  const hash = `SHA-${algorithm.slice(2)}`
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash }, false, ["verify"])
}
