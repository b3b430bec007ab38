/** Trouble that lasts, such as a server that is away: a log line when it begins, one a minute while it lasts, and one when it has ended. */
import type { Logger } from "./log.ts"

const QUIET_MS = 60_000

export interface TroubleTexts {
  readonly begins: string
  readonly ends: string
}

export class Trouble {
  readonly #logger: Logger
  readonly #texts: TroubleTexts
  readonly #fields: object
  readonly #elapsedMs: () => number
  #reason: Error | null = null
  #beganAt = 0
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(logger: Logger, texts: TroubleTexts, fields: object, elapsedMs: () => number) {
    this.#logger = logger
    this.#texts = texts
    this.#fields = fields
    this.#elapsedMs = elapsedMs
  }

  /** The latest failure, or null when all is well. */
  get reason(): Error | null {
    return this.#reason
  }

  failed(error: Error): void {
    const now = this.#elapsedMs()
    if (this.#reason === null) this.#beganAt = now
    this.#reason = error
    if (now - this.#toldAt < QUIET_MS) return
    this.#toldAt = now
    this.#logger.warn({ ...this.#fields, err: error, lasted_ms: this.#lastedMs() }, this.#texts.begins)
  }

  /** Logged as a warning too: the end must be seen by everyone who saw the beginning. */
  passed(): void {
    if (this.#reason === null) return
    this.#reason = null
    // The beginning of one that comes and goes was not told.
    if (this.#toldAt < this.#beganAt) return
    this.#logger.warn({ ...this.#fields, lasted_ms: this.#lastedMs() }, this.#texts.ends)
  }

  #lastedMs(): number {
    return Math.round(this.#elapsedMs() - this.#beganAt)
  }
}
