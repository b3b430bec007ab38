/** An API key as it is stored, and its public fields. */
import type { KeyScope } from "../core/key-scope.ts"
import type { Entry, Store } from "../store/store.ts"
import { date } from "./resource-context.ts"

/** Svix's names for the rights of a portal's key. */
export const CAPABILITIES = [
  "ViewBase",
  "ViewEndpointSecret",
  "ManageEndpointSecret",
  "ManageTransformations",
  "CreateAttempts",
  "ManageEndpoint",
] as const
export type Capability = (typeof CAPABILITIES)[number]

export interface KeyRecord {
  readonly name: string
  readonly scope: KeyScope
  readonly appId: string | null
  /** Null: all. */
  readonly capabilities: readonly Capability[] | null
  /** Of an agent's key: the only endpoints that it serves; null or absent: all of its application. */
  readonly endpointIds?: readonly string[] | null
  readonly featureFlags: readonly string[]
  readonly sessionId: string | null
  /** SHA-256 of the secret. */
  readonly digest: string
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

type Times = "expiresAt" | "revokedAt" | "lastUsedAt"

export interface Key extends Omit<KeyRecord, "digest" | "endpointIds" | Times> {
  readonly endpointIds: readonly string[] | null
  /** The public part of the token. */
  readonly id: string
  readonly expiresAt: Date | null
  /** The key is refused from this time on. It may be in the future. */
  readonly revokedAt: Date | null
  /** To the minute. */
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
}

export const KEY_KIND = "key"
/** An expired or revoked key is kept for 30 days, so that a refusal can name the reason. */
const KEPT_MS = 30 * 86_400_000

export function recordOf(entry: Entry): KeyRecord {
  return JSON.parse(entry.body)
}

/** The entry's next version, with this record. */
export function changed(entry: Omit<Entry, "body" | "expiresAt">, record: KeyRecord, now: number): Entry {
  const { expiresAt, revokedAt } = record
  const endsAt = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, revokedAt ?? Number.POSITIVE_INFINITY)
  return {
    ...entry,
    body: JSON.stringify(record),
    version: entry.version + 1,
    updatedAt: now,
    expiresAt: endsAt === Number.POSITIVE_INFINITY ? null : endsAt + KEPT_MS,
  }
}

/** Whether the key that gave these rights has ended, or their application is deleted. */
export async function isWithdrawn(
  store: Pick<Store, "getEntry" | "getApplication">,
  orgId: string,
  { appId, keyId }: { readonly appId: string | null; readonly keyId: string | null },
  now: number,
): Promise<boolean> {
  if (appId !== null && (await store.getApplication(orgId, appId)) === null) return true
  if (keyId === null) return false
  const entry = await store.getEntry(KEY_KIND, orgId, keyId, now)
  if (entry === null) return true
  const { revokedAt, expiresAt } = recordOf(entry)
  return (revokedAt !== null && revokedAt <= now) || (expiresAt !== null && expiresAt <= now)
}

export function showKey(entry: Entry): Key {
  const { digest: _digest, expiresAt, revokedAt, lastUsedAt, endpointIds = null, ...record } = recordOf(entry)
  return {
    id: entry.name,
    ...record,
    endpointIds,
    expiresAt: date(expiresAt),
    revokedAt: date(revokedAt),
    lastUsedAt: date(lastUsedAt),
    createdAt: date(entry.createdAt),
  }
}
