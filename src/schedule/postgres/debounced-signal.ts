/** A debounced signal: passed on at once, then at most every ten milliseconds. `retry` repeats it with backoff. */
import { Backoff } from "../../core/backoff.ts"

const PAUSE_MS = 10

export class DebouncedSignal {
  readonly #listener: () => void
  #pause: NodeJS.Timeout | null = null
  #again = false
  #retry: NodeJS.Timeout | null = null
  readonly #backoff = new Backoff({ firstMs: 10, longestMs: 320, random: Math.random })

  constructor(listener: () => void) {
    this.#listener = listener
  }

  send(): void {
    this.#again = this.#pause !== null
    if (this.#again) return
    this.#pause = setTimeout(() => {
      this.#pause = null
      if (this.#again) this.send()
    }, PAUSE_MS)
    this.#listener()
  }

  /** Sends again after a delay that grows until `settled`. */
  retry(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.send(), this.#backoff.nextMs())
  }

  settled(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = null
    this.#backoff.reset()
  }

  stop(): void {
    this.settled()
    if (this.#pause !== null) clearTimeout(this.#pause)
    this.#again = false
  }
}
