/**
 * The endpoints of applications that this process sends for, each with the number that they had in the store. A statement that relies on
 * them asks whether the number still stands: what somebody changed is never missed.
 */
import { Recipients, type Subscriber } from "../recipients.ts"
import type { Row } from "../rows.ts"
import type { NewMessage } from "../store.ts"
import type { Database } from "./connection.ts"
import type { Statement } from "./statement.ts"

export interface Route extends Subscriber {
  readonly version: number
}

export interface Routes {
  readonly recipients: Recipients<Route>
  readonly version: number
}

/** An application with more is left to the database, which looks only at those that want the type. */
const MOST_ENDPOINTS = 1000
/** Of all applications together. */
const MOST_KNOWN = 100_000

const LOAD: Statement = {
  name: "routes.load",
  text: `
    SELECT a.id AS app_id, coalesce(r.version, 0) AS routes_version, e.*
      FROM applications a
      LEFT JOIN application_routes r ON r.app_id = a.id
      LEFT JOIN LATERAL (
        SELECT id, url, ordered, event_types, channels, version FROM endpoints
         WHERE app_id = a.id AND deleted_at IS NULL AND NOT disabled ORDER BY id LIMIT ${MOST_ENDPOINTS + 1}
      ) e ON true
     WHERE a.deleted_at IS NULL AND a.id = coalesce(
       (SELECT id FROM applications WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL),
       (SELECT id FROM applications WHERE org_id = $1 AND uid = $2 AND deleted_at IS NULL)
     )
     ORDER BY e.id`,
}

interface Known {
  /** Null while it is not known, or too large to be. */
  routes: Routes | null
  loading: boolean
  /** For so many messages nobody looks again. */
  skips: number
}

/** One that is too large is looked at again after so many messages. */
const SKIPS_IF_LARGE = 1000

export class RouteBook {
  readonly #database: Database
  /** By tenant, and then by the key that was used. */
  readonly #known = new Map<string, Map<string, Known>>()
  readonly #appIds = new Set<string>()
  #size = 0

  constructor(database: Database) {
    this.#database = database
  }

  /** Null when the database has to say. From the second message on they are looked up, for those that follow. */
  of({ orgId, app }: Pick<NewMessage, "orgId" | "app">): Routes | null {
    let ofTenant = this.#known.get(orgId)
    if (ofTenant === undefined) {
      ofTenant = new Map()
      this.#known.set(orgId, ofTenant)
    }
    const known = ofTenant.get(app)
    if (known === undefined) {
      this.#count(1)
      ofTenant.set(app, { routes: null, loading: false, skips: 0 })
      return null
    }
    if (known.routes === null && !known.loading && known.skips-- <= 0) void this.#load(orgId, app, known)
    return known.routes
  }

  /** Whether messages for this application are accepted here. */
  knows(appId: string): boolean {
    return this.#appIds.has(appId)
  }

  forget({ orgId, app }: Pick<NewMessage, "orgId" | "app">): void {
    const ofTenant = this.#known.get(orgId)
    const known = ofTenant?.get(app)
    if (known === undefined) return
    ofTenant!.delete(app)
    if (ofTenant!.size === 0) this.#known.delete(orgId)
    this.#size -= 1 + (known.routes?.recipients.subscribers.length ?? 0)
  }

  async #load(orgId: string, app: string, known: Known): Promise<void> {
    known.loading = true
    try {
      const rows = await this.#database.runCalmly(LOAD, [orgId, app])
      if (this.#known.get(orgId)?.get(app) !== known) return
      // One that is not there may yet be made.
      if (rows.length === 0) return this.forget({ orgId, app })
      known.skips = rows.length > MOST_ENDPOINTS ? SKIPS_IF_LARGE : 0
      if (known.skips === 0) this.#keep(known, rows)
    } catch {
      // Only a shortcut: the next message tries again.
    } finally {
      known.loading = false
    }
  }

  #keep(known: Known, rows: readonly Row[]): void {
    const subscribers = rows
      .filter(({ id }) => id !== null)
      .map((row) => ({
        id: row.id as string,
        url: row.url as string,
        ordered: row.ordered as boolean,
        eventTypes: row.event_types as string[] | null,
        channels: row.channels as string[] | null,
        version: row.version as number,
      }))
    const { app_id, routes_version } = rows[0]!
    known.routes = {
      recipients: new Recipients(app_id as string, subscribers),
      version: routes_version as number,
    }
    this.#appIds.add(app_id as string)
    this.#count(subscribers.length)
  }

  #count(more: number): void {
    this.#size += more
    if (this.#size <= MOST_KNOWN) return
    this.#known.clear()
    this.#appIds.clear()
    this.#size = more
  }
}
