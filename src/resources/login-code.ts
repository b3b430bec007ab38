/** Login links: a code in the link is exchanged for a session, once. The store has its digest. */
import { PosthornError } from "../core/errors.ts"
import type { RandomBytes } from "../core/ids.ts"
import type { Entry, Store } from "../store/store.ts"
import { isWithdrawn } from "./key-record.ts"
import { digestOf, hasDigest, randomText } from "./key-token.ts"
import type { SessionRecord } from "./session-record.ts"

/** The rights of a session that is opened with the code. */
export type Grant = Pick<
  SessionRecord,
  "name" | "scope" | "appId" | "capabilities" | "featureFlags" | "sessionId" | "keyId" | "expiresAt"
>

interface CodeRecord {
  readonly digest: string
  readonly grant: Grant
  readonly isUsed: boolean
}

const CODE_KIND = "login-code"
const ID_LENGTH = 16
const SECRET_LENGTH = 40
/** An expired code is kept for a day more, so that a refusal can name the reason. */
const KEPT_MS = 86_400_000

interface CodeStore {
  readonly store: Pick<Store, "getApplication" | "getEntry" | "saveEntryIfUnchanged">
  readonly randomBytes: RandomBytes
}

export async function createCode(
  { store, randomBytes }: CodeStore,
  orgId: string,
  grant: Grant,
  times: { readonly now: number; readonly endsAt: number },
): Promise<string> {
  const [id, secret] = [randomText(ID_LENGTH, randomBytes), randomText(SECRET_LENGTH, randomBytes)]
  await store.saveEntryIfUnchanged({
    kind: CODE_KIND,
    orgId,
    name: id,
    owner: null,
    body: JSON.stringify({ digest: digestOf(secret), grant, isUsed: false } satisfies CodeRecord),
    version: 1,
    createdAt: times.now,
    updatedAt: times.now,
    expiresAt: times.endsAt + KEPT_MS,
  })
  return `phl_${id}_${secret}`
}

/** Marks the code as used; of concurrent calls one succeeds. Rejects with `not_found` for a code that opens nothing. */
export async function redeemCode(
  store: CodeStore["store"],
  code: string,
  now: number,
): Promise<{ readonly orgId: string; readonly grant: Grant }> {
  const [, id, secret] = /^phl_([0-9A-Za-z]{16})_([0-9A-Za-z]{40})$/.exec(code) ?? []
  const entry = id === undefined ? null : await store.getEntry(CODE_KIND, null, id, now)
  const record: CodeRecord | null = entry === null ? null : JSON.parse(entry.body)
  if (entry === null || record === null || !hasDigest(secret!, record.digest))
    throw refused("is not a login link of this server")
  if (record.isUsed) throw refused("was used already")
  if (endOf(entry) <= now) throw refused("has expired")
  if (await isWithdrawn(store, entry.orgId, record.grant, now)) throw refused("was revoked")
  try {
    await store.saveEntryIfUnchanged({
      ...entry,
      body: JSON.stringify({ ...record, isUsed: true }),
      version: entry.version + 1,
    })
  } catch (error) {
    if (error instanceof PosthornError && error.code === "conflict") throw refused("was used already")
    throw error
  }
  return { orgId: entry.orgId, grant: record.grant }
}

function endOf({ expiresAt }: Entry): number {
  return expiresAt! - KEPT_MS
}

function refused(why: string): PosthornError {
  return new PosthornError("not_found", `this link ${why}: ask for a new one`)
}
