/** Logs a failure that lasts, such as a server that is down: when it begins, once a minute, and when it ends. */
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

  /** The latest failure; null when there is none. */
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

  /** The end has the level of the beginning, so that every reader of the one sees the other. */
  passed(): void {
    if (this.#reason === null) return
    this.#reason = null
    // A failure within a minute of the last line was not logged, so its end is not logged either.
    if (this.#toldAt < this.#beganAt) return
    this.#logger.warn({ ...this.#fields, lasted_ms: this.#lastedMs() }, this.#texts.ends)
  }

  #lastedMs(): number {
    return Math.round(this.#elapsedMs() - this.#beganAt)
  }
}
