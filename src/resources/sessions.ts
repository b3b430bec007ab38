/** Sessions of browsers: opened with a key or a login link, used as a cookie or, in an embedded portal, as a bearer token. */
import { changed, type Key, recordOf } from "./key-record.ts"
import { forgetKeys } from "./key-ring.ts"
import { digestOf, makeToken } from "./key-token.ts"
import { createCode, type Grant } from "./login-code.ts"
import { readAndSave } from "./optimistic.ts"
import { ownerOf, readOwned } from "./owned-entries.ts"
import { byName, type Listing, listing, type PageInput } from "./paging.ts"
import { type ResourceContext, requireFound } from "./resource-context.ts"
import {
  LONGEST_SESSION_MS,
  SESSION_KIND,
  type Session,
  type SessionRecord,
  showSession,
} from "./session-record.ts"

export type { Grant } from "./login-code.ts"
export type { Session } from "./session-record.ts"

export interface NewSession extends Session {
  /** Shown only here. */
  readonly token: string
}

export interface SessionQuery extends PageInput {
  /** Only sessions of this application's portal, by id or uid. Null: only those of the dashboard. */
  appId?: string | null
}

/** For the login links of operators who can start the server or open its store. */
export const OPERATOR: Grant = {
  name: "login link",
  scope: "admin",
  appId: null,
  capabilities: null,
  featureFlags: [],
  sessionId: null,
  keyId: null,
  expiresAt: null,
}

/** How long a login link of an operator can be used. A portal's link can be used as long as its key. */
const LINK_MS = 3_600_000

export class Sessions {
  readonly #context: ResourceContext

  constructor(context: ResourceContext) {
    this.#context = context
  }

  /** @internal Its rights were checked. */
  async open(grant: Grant): Promise<NewSession> {
    const { store, clock, orgId, randomBytes } = this.#context
    const now = clock.now()
    const { id, secret, text } = makeToken("session", randomBytes)
    const record: SessionRecord = {
      ...grant,
      digest: digestOf(secret),
      expiresAt: Math.min(grant.expiresAt ?? Number.POSITIVE_INFINITY, now + LONGEST_SESSION_MS),
      revokedAt: null,
      lastUsedAt: now,
    }
    const blank = {
      kind: SESSION_KIND,
      orgId,
      name: id,
      owner: ownerOf(orgId, grant.appId),
      version: 0,
      createdAt: now,
      updatedAt: now,
    } as const
    const entry = changed(blank, record, now)
    await store.saveEntryIfUnchanged(entry)
    return { ...showSession(entry), token: text }
  }

  /**
   * A code that opens one session with these rights. The server's pages take it behind the `#` of their address: `/#code=…` for the
   * dashboard, `/portal#code=…` for an application's portal.
   */
  createCode(grant: Grant): Promise<string> {
    const now = this.#context.clock.now()
    const endsAt = (grant.appId === null ? null : grant.expiresAt) ?? now + LINK_MS
    return createCode(this.#context, this.#context.orgId, grant, { now, endsAt })
  }

  async get(id: string): Promise<Session> {
    return showSession(await this.#require(id))
  }

  /** By id, also those that ended in the last 30 days. */
  list(query: SessionQuery = {}): Listing<Session> {
    return listing(query, {
      fields: ["appId"],
      by: byName,
      read: ({ appId }) => readOwned(this.#context, SESSION_KIND, appId),
      show: showSession,
    })
  }

  /** Ends the session: at once on this server, within two seconds on others that share the store. */
  async revoke(id: string): Promise<Session> {
    const { store, clock } = this.#context
    return readAndSave(async () => {
      const entry = await this.#require(id)
      const record = recordOf(entry)
      const now = clock.now()
      const after = changed(entry, { ...record, revokedAt: Math.min(record.revokedAt ?? now, now) }, now)
      try {
        await store.saveEntryIfUnchanged(after)
        return showSession(after)
      } finally {
        forgetKeys(store)
      }
    })
  }

  #require(id: string) {
    const { store, orgId, clock } = this.#context
    return requireFound("session", id, (name) => store.getEntry(SESSION_KIND, orgId, name, clock.now()))
  }
}

/** A session that is opened with this key gets all of its rights. */
export function grantOf(key: Key): Grant {
  const { id, name, scope, appId, capabilities, featureFlags, sessionId, expiresAt } = key
  return {
    ...{ name, scope, appId, capabilities, featureFlags, sessionId },
    keyId: id,
    expiresAt: expiresAt?.getTime() ?? null,
  }
}
