/** Rings when lanes may be due: at once, but not more often than every ten milliseconds, however many hints come in. */

const PAUSE_MS = 10

export class Bell {
  readonly #due: () => void
  #pause: NodeJS.Timeout | null = null
  #again = false

  constructor(due: () => void) {
    this.#due = due
  }

  ring(): void {
    if (this.#pause !== null) {
      this.#again = true
      return
    }
    this.ringSoon()
    this.#again = false
    this.#due()
  }

  ringSoon(): void {
    this.#again = true
    this.#pause ??= setTimeout(() => {
      this.#pause = null
      if (this.#again) this.ring()
    }, PAUSE_MS)
  }

  stop(): void {
    if (this.#pause !== null) clearTimeout(this.#pause)
    this.#again = false
  }
}
