/**
 * Limits how many sessions a key opens. Each is a row that is kept for a month after its end: without the limit a key that may only read
 * could fill the store.
 */
import { BoundedCache } from "../core/bounded-cache.ts"
import { ApiError } from "./errors.ts"

export const MOST_SESSIONS_OF_A_KEY = 100
const WINDOW_MS = 3_600_000
const MOST_KEYS = 10_000

interface Window {
  readonly beganAt: number
  sessions: number
}

export class SessionLimit {
  readonly #windows = new BoundedCache<string, Window>(MOST_KEYS)

  /** Counts one more session; throws a 429 when the key has opened too many within an hour. */
  take(keyId: string, now: number): void {
    const current = this.#windows.get(keyId)
    const isOver = current === undefined || now - current.beganAt >= WINDOW_MS
    const window = isOver ? { beganAt: now, sessions: 0 } : current
    if (isOver) this.#windows.set(keyId, window)
    if (window.sessions >= MOST_SESSIONS_OF_A_KEY) {
      const seconds = Math.ceil((window.beganAt + WINDOW_MS - now) / 1000)
      throw ApiError.of(
        429,
        "too_many_sessions",
        `this key has opened ${MOST_SESSIONS_OF_A_KEY} sessions within an hour: use one of them, or send the key with each request`,
        seconds,
      )
    }
    window.sessions++
  }
}
