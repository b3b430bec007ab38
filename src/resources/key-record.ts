/** An API key as the store keeps it, and what others may see of it. */
import type { Entry } from "../store/store.ts"
import { date } from "./resource-context.ts"

/** `read` reads everything of the tenant, or of one application. */
export type KeyScope = "admin" | "application" | "read"

/** Svix's words for what a portal's key may do. */
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
  /** Null for all. */
  readonly capabilities: readonly Capability[] | null
  readonly featureFlags: readonly string[]
  readonly sessionId: string | null
  /** Of the secret, in SHA-256. */
  readonly digest: string
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

type Times = "expiresAt" | "revokedAt" | "lastUsedAt"

export interface Key extends Omit<KeyRecord, "digest" | Times> {
  /** The public part of the token. */
  readonly id: string
  readonly expiresAt: Date | null
  /** From this time on it opens nothing; it may lie ahead. */
  readonly revokedAt: Date | null
  /** To the minute. */
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
}

export const KEY_KIND = "key"
/** A key that is over can still be looked up for so long, to tell why it opens nothing. */
const KEPT_MS = 30 * 86_400_000

export function recordOf(entry: Entry): KeyRecord {
  return JSON.parse(entry.body)
}

/** The entry with another content. */
export function changed(entry: Omit<Entry, "body" | "expiresAt">, record: KeyRecord, now: number): Entry {
  const { expiresAt, revokedAt } = record
  const over = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, revokedAt ?? Number.POSITIVE_INFINITY)
  return {
    ...entry,
    body: JSON.stringify(record),
    version: entry.version + 1,
    updatedAt: now,
    expiresAt: over === Number.POSITIVE_INFINITY ? null : over + KEPT_MS,
  }
}

export function showKey(entry: Entry): Key {
  const { digest: _digest, expiresAt, revokedAt, lastUsedAt, ...record } = recordOf(entry)
  return {
    id: entry.name,
    ...record,
    expiresAt: date(expiresAt),
    revokedAt: date(revokedAt),
    lastUsedAt: date(lastUsedAt),
    createdAt: date(entry.createdAt),
  }
}
