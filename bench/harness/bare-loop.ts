/** What everything is compared with: as many requests as undici sends over 64 connections, of which nothing is kept. */
import { Pool } from "undici"
import { bodyOf, writeOrdinal } from "./payload.ts"
import type { Receiver } from "./receiver.ts"
import { type Round, timed } from "./rounds.ts"
import { CONNECTIONS } from "./settings.ts"
import { VoidRun } from "./void.ts"

/** By Little's law, requests under way are requests per second times the time of each. At the end of a round they grow fewer. */
const LEAST_UNDER_WAY = 0.8

export class BareLoop {
  readonly #receiver: Receiver
  readonly #pool: Pool

  constructor(receiver: Receiver) {
    this.#receiver = receiver
    this.#pool = new Pool(receiver.origin, { connections: CONNECTIONS, pipelining: 1 })
  }

  async run(count: number): Promise<Round> {
    const expected = await this.#receiver.expect(count)
    let next = expected.from
    let requestMs = 0
    const worker = async () => {
      const body = bodyOf(0)
      while (next < expected.from + count) {
        const sentAt = performance.now()
        writeOrdinal(body, next++)
        await this.request(body)
        requestMs += performance.now() - sentAt
      }
    }
    const round = await timed(count, () => Promise.all(Array.from({ length: CONNECTIONS }, worker)))
    await expected.complete()
    const underWay = (requestMs / 1000) * (round.perSecond / count)
    if (underWay < CONNECTIONS * LEAST_UNDER_WAY || underWay > CONNECTIONS + 1)
      throw new VoidRun(`${underWay.toFixed(1)} requests were under way on ${CONNECTIONS} connections`)
    return round
  }

  /** One request as the loop makes it; the workers of the peers make the same. */
  async request(body: Buffer | string): Promise<void> {
    const response = await this.#pool.request({
      path: "/ok",
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    })
    await response.body.dump()
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}
