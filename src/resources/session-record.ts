/** A session as it is stored, and its public fields. A session has the rights of the key or the login link that opened it. */
import type { Entry } from "../store/store.ts"
import { type Key, type KeyRecord, showKey } from "./key-record.ts"

export interface SessionRecord extends KeyRecord {
  /** The key that opened the session, which ends with it. Null: a login link without a key did. */
  readonly keyId: string | null
}

export interface Session extends Omit<Key, "endpointIds"> {
  readonly keyId: string | null
  readonly expiresAt: Date
  readonly lastUsedAt: Date
}

export const SESSION_KIND = "session"
/** A session ends this long after its last request. */
export const IDLE_MS = 12 * 3_600_000
/** A session ends this long after it was opened. */
export const LONGEST_SESSION_MS = 7 * 86_400_000

export function showSession(entry: Entry): Session {
  const { endpointIds: _none, ...shown } = showKey(entry)
  return shown as Session
}
