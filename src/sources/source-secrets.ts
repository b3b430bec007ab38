/** What a source keeps secret, and what is required of it. Pure: the result is sealed by the caller. */
import { invalid, PosthornError } from "../core/errors.ts"
import { requireSecret } from "../core/parse-verification.ts"
import type { Vault } from "../core/vault.ts"
import type { Verification } from "../core/verification-schemes.ts"
import type { StoredSecret } from "../engine/target.ts"
import type { HandshakeInput } from "./source-input.ts"

export interface SourceSecrets {
  /** The part of the URL's token that is not the id. */
  readonly url: string
  /** The provider signs with one of them; the newest first. */
  readonly signing: readonly StoredSecret[]
  /** Meta's; null for other handshakes. */
  readonly verifyToken: string | null
}

const MOST_OLD_SECRETS = 10

export function sealSecrets(vault: Vault, sourceId: string, secrets: SourceSecrets): string {
  return Buffer.from(vault.seal(JSON.stringify(secrets), rowOf(sourceId))).toString("base64")
}

export function openSecrets(vault: Vault, sourceId: string, sealed: string): SourceSecrets {
  return JSON.parse(vault.open(Buffer.from(sealed, "base64"), rowOf(sourceId)))
}

/** A sealed text is bound to its row. */
const rowOf = (sourceId: string) => `source:${sourceId}`

/** Expiry is a date, so it is compared with the wall clock. */
export function areValid(signing: readonly StoredSecret[], wallNow: number): readonly StoredSecret[] {
  return signing.filter(({ expiresAt }) => expiresAt === null || expiresAt > wallNow)
}

/** A given secret replaces all. Without one, the stored ones must fit the scheme, which may have changed. */
export function requireSigning(
  verification: Verification,
  given: string | undefined,
  stored: readonly StoredSecret[] = [],
): readonly StoredSecret[] {
  if (given !== undefined) return [{ key: requireSecret(given, verification), expiresAt: null }]
  if (verification.scheme === "none") return []
  if (stored.length === 0)
    throw invalid(
      "secret",
      `is required: what the provider signs with, for the scheme ${verification.scheme}`,
    )
  for (const { key } of stored) requireSecret(key, verification)
  return stored
}

/** The new secret first. The current one gets the grace period, and expired ones are dropped. */
export function rotate(
  signing: readonly StoredSecret[],
  key: string,
  graceMs: number,
  wallNow: number,
): readonly StoredSecret[] {
  const ending = signing.map((one) => ({ ...one, expiresAt: one.expiresAt ?? wallNow + graceMs }))
  const old = areValid(ending, wallNow)
  if (old.length > MOST_OLD_SECRETS)
    throw new PosthornError(
      "limit_reached",
      `${old.length} old secrets are still in their grace period; wait until one has expired`,
    )
  return [{ key, expiresAt: null }, ...old]
}

/** Of Meta's handshake: the given token, or the stored one. */
export function requireVerifyToken(handshake: HandshakeInput | null, stored: string | null): string | null {
  if (handshake?.kind !== "meta") return null
  const token = handshake.verifyToken ?? stored
  if (token === null)
    throw invalid("handshake.verifyToken", "is required: the text that you enter at Meta, too")
  return token
}
