/** A health check that concurrent requests share: each check writes to the store. */
import type { Health, Posthorn } from "./posthorn.ts"

const SHARED_MS = 250

export function sharedHealth(posthorn: Posthorn): () => Promise<Health> {
  const { clock } = posthorn.context
  let asked: { readonly health: Promise<Health>; readonly untilMs: number } | null = null
  let isPending = false
  const answered = () => {
    isPending = false
  }
  return () => {
    // While the store hangs, one check hangs with it, not one for each request.
    if (asked !== null && (isPending || clock.now() < asked.untilMs)) return asked.health
    isPending = true
    asked = { health: posthorn.health(), untilMs: clock.now() + SHARED_MS }
    asked.health.then(answered, answered)
    return asked.health
  }
}
