/** What an API key may do. `read`: reads all data of the tenant, or of one application. `agent`: connects an agent of one application, and nothing else. */
export const KEY_SCOPES = ["admin", "application", "read", "agent"] as const
export type KeyScope = (typeof KEY_SCOPES)[number]
