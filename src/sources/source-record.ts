/** A source as it is stored, with its secrets sealed, and its public fields. */
import type { Handshake } from "../core/handshake.ts"
import type { Place } from "../core/received-request.ts"
import type { Vault } from "../core/vault.ts"
import type { Verification } from "../core/verification-schemes.ts"
import { date } from "../resources/resource-context.ts"
import type { Entry } from "../store/store.ts"
import { areValid, openSecrets } from "./source-secrets.ts"
import { SOURCE_PATH, writeSourceToken } from "./source-token.ts"

/** `scheme`: the place that the scheme documents, if it does. */
export type Deduplication = "scheme" | "off" | Place

export interface SourceSettings {
  /** Unique within the application. */
  readonly name: string
  readonly description: string
  /** An event type, or where in the request it is; null: `inbound.NAME`. */
  readonly eventType: string | Place | null
  readonly verification: Verification
  /** Where the provider's id of a delivery is: a repetition with the same id is a duplicate. */
  readonly deduplication: Deduplication
  /** Requests per second, of each process. */
  readonly rateLimit: number
  /** The largest body; null: `maxPayloadBytes`, which no source can exceed. */
  readonly maxBytes: number | null
  /** Without it, the URL is answered as if it did not exist. */
  readonly enabled: boolean
}

export interface SourceRecord extends SourceSettings {
  /** Null: none. Absent: the default of the scheme, which a later change of the scheme changes too. */
  readonly handshake?: Handshake | null
  /** SHA-256 of the URL's secret. */
  readonly digest: string
  /** Base64 of `SourceSecrets`. */
  readonly sealed: string
}

export interface Source extends SourceSettings {
  readonly id: string
  readonly appId: string
  readonly handshake: { readonly kind: Handshake } | null
  /** The secret part of the URL. */
  readonly token: string
  /** The path of the URL, `/in/TOKEN`. */
  readonly path: string
  /** Those that requests are verified with now; they are not shown. */
  readonly secrets: { readonly count: number; readonly overlapEndsAt: Date | null }
  readonly createdAt: Date
  readonly updatedAt: Date
}

export const SOURCE_KIND = "source"

export function recordOf(entry: Entry): SourceRecord {
  return JSON.parse(entry.body)
}

export function handshakeOf({ handshake, verification }: SourceRecord): Handshake | null {
  // Slack sends its challenge to every new URL.
  return handshake === undefined ? (verification.scheme === "slack" ? "slack" : null) : handshake
}

export function showSource(entry: Entry, vault: Vault, wallNow: number): Source {
  const record = recordOf(entry)
  const { digest: _digest, sealed, ...settings } = record
  const handshake = handshakeOf(record)
  const { url, signing } = openSecrets(vault, entry.name, sealed)
  const secrets = areValid(signing, wallNow)
  const ends = secrets.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt]))
  const token = writeSourceToken({ sourceId: entry.name, secret: url })
  return {
    id: entry.name,
    appId: entry.owner!,
    ...settings,
    handshake: handshake === null ? null : { kind: handshake },
    token,
    path: SOURCE_PATH + token,
    secrets: { count: secrets.length, overlapEndsAt: date(ends.length === 0 ? null : Math.max(...ends)) },
    createdAt: date(entry.createdAt),
    updatedAt: date(entry.updatedAt),
  }
}
