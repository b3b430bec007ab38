/** The bare loop, with which everything is compared: undici sends requests over 64 connections and stores nothing. */
import { Pool } from "undici"
import { measureCeiling } from "./ceiling.ts"
import { bodyOf, writeOrdinal } from "./payload.ts"
import type { Receiver } from "./receiver.ts"
import { type Round, timed } from "./rounds.ts"
import { CONNECTIONS } from "./settings.ts"
import { VoidRun } from "./void.ts"

/** The largest share of the receiver's ceiling. Above it, the receiver would be measured instead of the loop. */
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

  /** The receiver's ceiling, in requests per second. */
  get ceilingPerSecond(): number {
    return this.#ceilingPerSecond
  }

  /** Rounds that came near the ceiling. */
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

  /** On a shared machine the ceiling may have been measured in a slow moment: it is measured again before a round is void. */
  async #checkCeiling({ perSecond }: Round): Promise<void> {
    const isNear = () => perSecond > MOST_OF_CEILING * this.#ceilingPerSecond
    if (!isNear()) return
    this.#measuredAgain++
    this.#ceilingPerSecond = await this.#measureCeiling()
    if (isNear())
      throw new VoidRun("the receiver was the limit: the bare loop came near the most that it takes")
  }

  /** One request of the loop. The workers of the peers send the same one. */
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
