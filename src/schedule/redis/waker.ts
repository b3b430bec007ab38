/** Blocks on a list in Redis until another worker, which has no room, reports due lanes. */
import { setTimeout as delay } from "node:timers/promises"
import type { Redis } from "ioredis"
import { Backoff } from "../../core/backoff.ts"
import type { Instruments } from "../../observe/instruments.ts"
import { makeRedis } from "./connection.ts"

/** Shorter than the connection's socket timeout, which notices a lost server. */
const SLEEP_SECONDS = 1

export class Waker {
  readonly #redis: Redis
  readonly #key: string
  readonly #wake: () => void
  readonly #instruments: Instruments
  #ended = false

  constructor(url: string, key: string, instruments: Instruments, wake: () => void) {
    // A connection of its own, since BLPOP blocks it.
    this.#redis = makeRedis(url)
    this.#key = key
    this.#wake = wake
    this.#instruments = instruments
  }

  async start(): Promise<void> {
    await this.#redis.connect().catch(() => {})
    const backoff = new Backoff({ firstMs: 50, longestMs: 500, random: Math.random })
    while (!this.#ended) {
      try {
        if ((await this.#redis.blpop(this.#key, SLEEP_SECONDS)) !== null) this.#wake()
        backoff.reset()
      } catch (error) {
        if (this.#ended) return
        this.#instruments.redisFailed(error as Error)
        await delay(backoff.nextMs())
      }
    }
  }

  end(): void {
    this.#ended = true
    this.#redis.disconnect()
  }
}
