/** Sleeps in Redis until a lane becomes due that this worker could take: another worker, which has no room for it, says so. */
import { setTimeout as delay } from "node:timers/promises"
import type { Redis } from "ioredis"
import { Backoff } from "../../core/backoff.ts"
import { makeRedis } from "./connection.ts"

/** An answer comes at least so often: a server that is silent for longer is lost, which the connection's watchdog notices. */
const SLEEP_SECONDS = 1

export class Waker {
  readonly #redis: Redis
  readonly #key: string
  readonly #wake: () => void
  #ended = false

  constructor(url: string, key: string, wake: () => void) {
    // On a connection of its own: nothing else could be asked on it meanwhile.
    this.#redis = makeRedis(url)
    this.#key = key
    this.#wake = wake
  }

  async start(): Promise<void> {
    await this.#redis.connect().catch(() => {})
    const backoff = new Backoff({ firstMs: 50, longestMs: 500, random: Math.random })
    while (!this.#ended) {
      try {
        if ((await this.#redis.blpop(this.#key, SLEEP_SECONDS)) !== null) this.#wake()
        backoff.reset()
      } catch {
        if (!this.#ended) await delay(backoff.nextMs())
      }
    }
  }

  end(): void {
    this.#ended = true
    this.#redis.disconnect()
  }
}
