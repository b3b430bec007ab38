/**
 * Tells tenants by webhook what happens to their webhooks; Svix calls these operational webhooks. They belong to an application of a
 * shadow tenant, which no key can name, so they are signed, retried and listed as any other.
 */
import { BoundedCache } from "../core/bounded-cache.ts"
import { describe, hasCode } from "../core/errors.ts"
import { isShadow } from "../core/org.ts"
import type { EventSubscriber, InternalEvent } from "../observe/event-stream.ts"
import type { Logger } from "../observe/log.ts"
import type { Store } from "../store/store.ts"
import type { Tenant } from "../tenant.ts"
import { type Notice, noticeOf } from "./notices.ts"

/** The application that the operational endpoints of a tenant belong to. */
export const TENANT_WEBHOOK_APP = "operational"
const SHADOW = ":operational"
/** How long a lookup that found no operational webhooks of a tenant is cached. */
const CACHED_MS = 2000
const MOST_CACHED = 10_000

/** Svix's way: this organization has an application for each organization that is told, with the organization's id as its uid. */
export const MANAGEMENT_ORG = "org_00000000000SvixManagement00"

interface Destination {
  readonly tenant: Tenant
  readonly app: string
}

export interface TenantWebhooksParts {
  readonly store: Store
  readonly logger: Logger
  /** Any tenant, shadow tenants too. */
  tenant(orgId: string): Tenant
}

export class TenantWebhooks implements EventSubscriber {
  readonly #parts: TenantWebhooksParts
  /** Tenants without operational webhooks, and when the store said so. */
  readonly #without = new BoundedCache<string, number>(MOST_CACHED)
  /** How often `open` made an application: a lookup that began before must not be cached. */
  #made = 0
  readonly #inFlight = new Set<Promise<void>>()

  constructor(parts: TenantWebhooksParts) {
    this.#parts = parts
  }

  /** The tenant's shadow, if it was opened before. */
  async find(orgId: string): Promise<Tenant | null> {
    const application = await this.#parts.store.getApplication(orgId + SHADOW, TENANT_WEBHOOK_APP)
    return application === null ? null : this.#parts.tenant(orgId + SHADOW)
  }

  /** The tenant's shadow, with its application. */
  async open(orgId: string): Promise<Tenant> {
    const found = await this.find(orgId)
    if (found !== null) return found
    const tenant = this.#parts.tenant(orgId + SHADOW)
    try {
      await tenant.applications.create({ name: "Operational webhooks", uid: TENANT_WEBHOOK_APP })
    } catch (error) {
      if (!hasCode(error, "conflict")) throw error
    }
    this.#made++
    this.#without.delete(orgId)
    return tenant
  }

  handle(event: InternalEvent): void {
    const notice = noticeOf(event, this.#parts.store)
    if (notice === null) return
    const sent = this.#send(notice).catch((error) => this.#lost(error))
    this.#inFlight.add(sent)
    void sent.then(() => this.#inFlight.delete(sent))
  }

  /** Resolves when every webhook is accepted; the store must not close before. */
  async settled(): Promise<void> {
    await Promise.all(this.#inFlight)
  }

  async #send(pending: Promise<Notice | null>): Promise<void> {
    const notice = await pending
    if (notice === null || isShadow(notice.orgId)) return
    const destinations = await this.#destinations(notice.orgId)
    if (destinations.length === 0) return
    const { type, idempotencyKey } = notice
    const payload = { type, data: await notice.data() }
    const key = idempotencyKey === null ? {} : { idempotencyKey }
    // A destination that fails does not stop the other.
    for (const { tenant, app } of destinations)
      await tenant.send(app, { eventType: type, payload, ...key }).catch((error) => this.#lost(error))
  }

  #lost(error: unknown): void {
    // Another process sent the same webhook.
    if (hasCode(error, "conflict")) return
    this.#parts.logger.warn({ err: error }, `An operational webhook was lost: ${describe(error)}`)
  }

  async #destinations(orgId: string): Promise<Destination[]> {
    const own = await this.#own(orgId)
    const managed = await this.#managed(orgId)
    return [
      ...(own === null ? [] : [{ tenant: own, app: TENANT_WEBHOOK_APP }]),
      ...(managed === null ? [] : [{ tenant: managed, app: orgId }]),
    ]
  }

  async #own(orgId: string): Promise<Tenant | null> {
    if (performance.now() - (this.#without.get(orgId) ?? Number.NEGATIVE_INFINITY) < CACHED_MS) return null
    const made = this.#made
    const tenant = await this.find(orgId)
    if (tenant !== null || made !== this.#made) return tenant
    this.#without.set(orgId, performance.now())
    return null
  }

  /** Not for the management organization itself: a failing webhook would be reported to the endpoint that fails. */
  async #managed(orgId: string): Promise<Tenant | null> {
    if (orgId === MANAGEMENT_ORG) return null
    const application = await this.#parts.store.getApplication(MANAGEMENT_ORG, orgId)
    return application === null ? null : this.#parts.tenant(MANAGEMENT_ORG)
  }
}
