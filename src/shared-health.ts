/** A health check that concurrent requests share: each check writes to the store. */
import type { Health, Posthorn } from "./posthorn.ts"

const SHARED_MS = 250

export function sharedHealth(posthorn: Posthorn): () => Promise<Health> {
  const { clock } = posthorn.context
  let asked: { readonly health: Promise<Health>; readonly untilMs: number } | null = null
  return () => {
    if (asked === null || clock.now() >= asked.untilMs)
      asked = { health: posthorn.health(), untilMs: clock.now() + SHARED_MS }
    return asked.health
  }
}
