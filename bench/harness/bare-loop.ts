/** What everything is compared with: as many requests as undici sends over 64 connections, of which nothing is kept. */
import { Pool } from "undici"
import { measureCeiling } from "./ceiling.ts"
import { bodyOf, writeOrdinal } from "./payload.ts"
import type { Receiver } from "./receiver.ts"
import { type Round, timed } from "./rounds.ts"
import { CONNECTIONS } from "./settings.ts"
import { VoidRun } from "./void.ts"

/** Of the receiver's ceiling: nearer to it, and it is the receiver that was measured. */
const MOST_OF_CEILING = 0.9

export class BareLoop {
  readonly #receiver: Receiver
  readonly #measureCeiling: () => Promise<number>
  readonly #pool: Pool
  #ceilingPerSecond: number
  #measuredAgain = 0

  constructor(
    receiver: Receiver,
    ceilingPerSecond: number,
    measureAgain: () => Promise<number> = () => measureCeiling(receiver),
  ) {
    this.#receiver = receiver
    this.#ceilingPerSecond = ceilingPerSecond
    this.#measureCeiling = measureAgain
    this.#pool = new Pool(receiver.origin, { connections: CONNECTIONS, pipelining: 1 })
  }

  /** The most requests per second that the receiver takes. */
  get ceilingPerSecond(): number {
    return this.#ceilingPerSecond
  }

  /** How often a round came near the ceiling. */
  get measuredAgain(): number {
    return this.#measuredAgain
  }

  async run(count: number): Promise<Round> {
    const expected = await this.#receiver.expect(count)
    let next = expected.from
    const worker = async () => {
      const body = bodyOf(0)
      while (next < expected.from + count) {
        writeOrdinal(body, next++)
        await this.request(body)
      }
    }
    const round = await timed(count, () => Promise.all(Array.from({ length: CONNECTIONS }, worker)))
    await expected.complete()
    await this.#checkCeiling(round)
    return round
  }

  /** On a machine that others use too, the ceiling may have been measured in a slow moment: what it is at this one counts. */
  async #checkCeiling({ perSecond }: Round): Promise<void> {
    const isNear = () => perSecond > MOST_OF_CEILING * this.#ceilingPerSecond
    if (!isNear()) return
    this.#measuredAgain++
    this.#ceilingPerSecond = await this.#measureCeiling()
    if (isNear())
      throw new VoidRun("the receiver was the limit: the bare loop came near the most that it takes")
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
