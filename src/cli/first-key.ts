/** The first admin key of a server. */
import { PosthornError } from "../core/errors.ts"
import type { Key, Keys } from "../resources/keys.ts"

/** Creates an admin key if there is none, and returns its token. */
export async function makeFirstKey(keys: Keys): Promise<string | null> {
  if (await hasAdmin(keys)) return null
  return (await keys.create({ name: "First admin key", scope: "admin" })).token
}

/** Uses the operator's own key. */
export async function adoptKey(keys: Keys, given: string): Promise<void> {
  let problem: string | null = null
  try {
    const { scope, revokedAt, expiresAt } = await keys.adopt(given, {
      name: "POSTHORN_API_KEY",
      scope: "admin",
    })
    if (scope !== "admin") problem = "is not an admin's key"
    else if (isOver(expiresAt)) problem = `expired on ${expiresAt.toISOString()}; choose another`
    else if (isOver(revokedAt)) problem = `was revoked on ${revokedAt.toISOString()}; choose another`
  } catch (error) {
    if (!(error instanceof PosthornError) || error.field !== "token") throw error
    problem = error.message.replace(/^token /, "")
  }
  if (problem !== null) throw new PosthornError("invalid_input", `apiKey ${problem}`, { field: "apiKey" })
}

async function hasAdmin(keys: Keys): Promise<boolean> {
  for (let cursor: string | null = null; ; ) {
    const page = await keys.list({ limit: 250, cursor, appId: null })
    if (page.data.some(isUsable)) return true
    if (page.done) return false
    cursor = page.cursor
  }
}

function isUsable({ scope, revokedAt, expiresAt }: Key): boolean {
  return scope === "admin" && !isOver(revokedAt) && !isOver(expiresAt)
}

function isOver(end: Date | null): end is Date {
  return end !== null && end.getTime() <= Date.now()
}
