/** Tenants: an organization owns applications, event types, policies and keys, and sees nothing of another's. */
import { invalid } from "./errors.ts"

/** Whose everything is until somebody says otherwise. It is Svix's own default, so that the tokens made for that find their data here. */
export const DEFAULT_ORG = "org_23rb8YdGqMT0qIzpgGwdXfHirMu"

export function requireOrg(value: unknown): string {
  if (typeof value !== "string" || !/^org_[A-Za-z0-9]{1,64}$/.test(value))
    throw invalid("organization", "must be org_ and then letters and digits")
  return value
}
