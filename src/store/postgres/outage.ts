/**
 * Whether the server can be used. After a failure it is probed in the background, with backoff, until it answers again.
 */
import { Backoff } from "../../core/backoff.ts"

/** An outage that returns sooner than this continues the backoff. */
const STEADY_MS = 10_000

export interface OutageOptions {
  /** Rejects while the server cannot be used. */
  probe(): Promise<void>
  /** A probe failed: calls in flight will get no answer. */
  onGone(): void
}

export class Outage {
  readonly #options: OutageOptions
  readonly #onUp = new Set<() => void>()
  #trouble: unknown = null
  #timer: NodeJS.Timeout | null = null
  readonly #backoff = new Backoff({ firstMs: 100, longestMs: 2000, random: Math.random })
  #upAt = Number.NEGATIVE_INFINITY
  #closed = false

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** Why the server cannot be used; null when it can. */
  get trouble(): unknown {
    return this.#trouble
  }

  begin(error: unknown): void {
    if (this.#trouble !== null || this.#closed) return
    this.#trouble = error
    if (performance.now() - this.#upAt >= STEADY_MS) this.#backoff.reset()
    this.#probeLater()
  }

  /** Called whenever the server can be used again; returns a function that unsubscribes. */
  onUp(listener: () => void): () => void {
    this.#onUp.add(listener)
    return () => this.#onUp.delete(listener)
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #probeLater(): void {
    this.#timer = setTimeout(() => void this.#probe(), this.#backoff.nextMs())
  }

  async #probe(): Promise<void> {
    try {
      await this.#options.probe()
    } catch (error) {
      if (this.#closed) return
      this.#trouble = error
      this.#options.onGone()
      return this.#probeLater()
    }
    if (this.#closed) return
    this.#trouble = null
    this.#upAt = performance.now()
    for (const listener of this.#onUp) listener()
  }
}
