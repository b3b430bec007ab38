/**
 * Operational webhooks: what happens to a tenant's webhooks, told to the tenant by webhook. They are delivered as any other, by an
 * application of a tenant beside the real one that no key can name: signed, retried and kept with nothing written twice.
 */
import { BoundedCache } from "../core/bounded-cache.ts"
import { describe, PosthornError } from "../core/errors.ts"
import type { Logger } from "../observe/log.ts"
import type { Store } from "../store/store.ts"
import type { Tenant } from "../tenant.ts"

export const TENANT_WEBHOOK_EVENT_TYPES = [
  "endpoint.created",
  "endpoint.updated",
  "endpoint.deleted",
  "endpoint.enabled",
  "endpoint.disabled",
  "message.attempt.failing",
  "message.attempt.exhausted",
  "message.attempt.recovered",
  "background_task.finished",
] as const
export type TenantWebhookEventType = (typeof TENANT_WEBHOOK_EVENT_TYPES)[number]

/** The application that the operational endpoints of a tenant belong to. */
export const TENANT_WEBHOOK_APP = "operational"
const SHADOW = ":operational"
/** How long it is believed that a tenant has none. */
const BELIEVED_MS = 2000
const MOST_REMEMBERED = 10_000

/** Svix's way: this organization has an application for each one that wants to be told, with the organization's id as its uid. */
export const MANAGEMENT_ORG = "org_00000000000SvixManagement00"

interface Destination {
  readonly tenant: Tenant
  readonly app: string
}

export interface TenantWebhooksParts {
  readonly store: Store
  readonly logger: Logger
  /** Any tenant, those beside the real ones too. */
  tenant(orgId: string): Tenant
}

export class TenantWebhooks {
  readonly #parts: TenantWebhooksParts
  /** Tenants without operational webhooks, and when that was looked up. */
  readonly #without = new BoundedCache<string, number>(MOST_REMEMBERED)
  /** How often `open` made an application: a lookup from before that must not be remembered. */
  #made = 0
  readonly #underWay = new Set<Promise<void>>()

  constructor(parts: TenantWebhooksParts) {
    this.#parts = parts
  }

  /** The tenant beside this one, if it was opened before. */
  async find(orgId: string): Promise<Tenant | null> {
    const application = await this.#parts.store.getApplication(orgId + SHADOW, TENANT_WEBHOOK_APP)
    return application === null ? null : this.#parts.tenant(orgId + SHADOW)
  }

  /** The tenant beside this one, with the application made. */
  async open(orgId: string): Promise<Tenant> {
    const found = await this.find(orgId)
    if (found !== null) return found
    const tenant = this.#parts.tenant(orgId + SHADOW)
    try {
      await tenant.applications.create({ name: "Operational webhooks", uid: TENANT_WEBHOOK_APP })
    } catch (error) {
      if (!(error instanceof PosthornError && error.code === "conflict")) throw error
    }
    this.#made++
    this.#without.delete(orgId)
    return tenant
  }

  /** Never rejects: that nobody could be told is logged, and changes nothing of what happened. */
  announce(
    orgId: string,
    type: TenantWebhookEventType,
    data: () => Promise<object> | object,
    once: string | null = null,
  ): Promise<void> {
    const told = this.#announce(orgId, type, data, once)
    this.#underWay.add(told)
    void told.then(() => this.#underWay.delete(told))
    return told
  }

  /** Resolves when everything that was announced is written down: before that the store must not close. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #announce(
    orgId: string,
    type: TenantWebhookEventType,
    data: () => Promise<object> | object,
    once: string | null,
  ): Promise<void> {
    try {
      const destinations = orgId.endsWith(SHADOW) ? [] : await this.#wantedBy(orgId)
      if (destinations.length === 0) return
      const payload = { type, data: await data() }
      // Two processes may have seen the same thing happen.
      const key = once === null ? {} : { idempotencyKey: `${type}:${once}` }
      // One destination that fails does not keep the other from its notice.
      for (const { tenant, app } of destinations)
        await tenant.send(app, { eventType: type, payload, ...key }).catch((error) => this.#lost(error))
    } catch (error) {
      this.#lost(error)
    }
  }

  /** A conflict is none: another process announced the same. */
  #lost(error: unknown): void {
    if (error instanceof PosthornError && error.code === "conflict") return
    this.#parts.logger.warn({ err: error }, `An operational webhook was lost: ${describe(error)}`)
  }

  async #wantedBy(orgId: string): Promise<Destination[]> {
    const own = await this.#own(orgId)
    const managed = await this.#managed(orgId)
    return [
      ...(own === null ? [] : [{ tenant: own, app: TENANT_WEBHOOK_APP }]),
      ...(managed === null ? [] : [{ tenant: managed, app: orgId }]),
    ]
  }

  async #own(orgId: string): Promise<Tenant | null> {
    if (performance.now() - (this.#without.get(orgId) ?? Number.NEGATIVE_INFINITY) < BELIEVED_MS) return null
    const made = this.#made
    const tenant = await this.find(orgId)
    if (tenant !== null || made !== this.#made) return tenant
    this.#without.set(orgId, performance.now())
    return null
  }

  /** Not of itself: a webhook of the management organization that fails would be told of to the same endpoint. */
  async #managed(orgId: string): Promise<Tenant | null> {
    if (orgId === MANAGEMENT_ORG) return null
    const application = await this.#parts.store.getApplication(MANAGEMENT_ORG, orgId)
    return application === null ? null : this.#parts.tenant(MANAGEMENT_ORG)
  }
}
