/** Counts an agent's frames without a use: late acknowledgements, unknown kinds, `credit`, `working`, `drain`, pings. */
import type { Clock } from "../../core/clock.ts"
import { MOST_NOISE } from "../../core/relay-protocol.ts"

const WINDOW_MS = 10_000

export class Noise {
  readonly #clock: Clock
  #sinceMs: number
  #frames = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sinceMs = clock.elapsedMs()
  }

  /** Counts a frame. True: it is one too many. */
  isFloodWithThis(): boolean {
    const now = this.#clock.elapsedMs()
    if (now - this.#sinceMs >= WINDOW_MS) {
      this.#sinceMs = now
      this.#frames = 0
    }
    return ++this.#frames > MOST_NOISE
  }
}
