/** Tenants: an organization owns applications, event types, policies and keys, and has no access to those of another. */
import { invalid } from "./errors.ts"

/** The default tenant. It is Svix's default too, so that tokens made for Svix's server find their data here. */
export const DEFAULT_ORG = "org_23rb8YdGqMT0qIzpgGwdXfHirMu"

/** The tenant of Posthorn's own notifications. No key can name it. */
export const NOTIFICATIONS_ORG = "posthorn:notifications"

export function requireOrg(value: unknown): string {
  if (typeof value !== "string" || !/^org_[A-Za-z0-9]{1,64}$/.test(value))
    throw invalid("organization", "must be org_ and then letters and digits")
  return value
}

/** A tenant of Posthorn's own, which no key can name: of operational webhooks, or of notifications. */
export function isShadow(orgId: string): boolean {
  return orgId.includes(":")
}
