/** Rings when lanes may be due: at once, but not more often than every ten milliseconds, however many hints come in. */
import { Backoff } from "../../core/backoff.ts"

const PAUSE_MS = 10

export class Bell {
  readonly #due: () => void
  #pause: NodeJS.Timeout | null = null
  #again = false
  #retry: NodeJS.Timeout | null = null
  /** Something that cannot be done yet is tried again after a while, and then less and less often. */
  readonly #backoff = new Backoff({ firstMs: 10, longestMs: 320, random: Math.random })

  constructor(due: () => void) {
    this.#due = due
  }

  ring(): void {
    this.#again = this.#pause !== null
    if (this.#again) return
    this.#pause = setTimeout(() => {
      this.#pause = null
      if (this.#again) this.ring()
    }, PAUSE_MS)
    this.#due()
  }

  /** All that could be done was done, or not. */
  done(all: boolean): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = all ? null : setTimeout(() => this.ring(), this.#backoff.nextMs())
    if (all) this.#backoff.reset()
  }

  stop(): void {
    this.done(true)
    if (this.#pause !== null) clearTimeout(this.#pause)
    this.#again = false
  }
}
