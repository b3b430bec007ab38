/** What every part is given: how much to measure, a receiver, the bare loop and servers. */
import { BareLoop } from "./bare-loop.ts"
import { measureCeiling } from "./ceiling.ts"
import { Receiver } from "./receiver.ts"
import type { RaceTurns } from "./rounds.ts"
import { Servers } from "./servers.ts"

/** Numbers by dotted names: the figures, and what they were made from. */
export type Values = { readonly [name: string]: number }

export interface Part {
  /** Of the figures that it measures, each a beginning of their names. */
  readonly names: readonly string[]
  /** Left out of a quick run of everything: it tells of our own choices, and has no place in a comparison with others. */
  readonly isAside?: boolean
  run(bench: Bench): Promise<Values>
}

const BARE_WARMUP = 10_000

export class Bench {
  readonly quick: boolean
  readonly receiver: Receiver
  readonly bare: BareLoop
  readonly servers: Servers

  private constructor(quick: boolean, receiver: Receiver, ceilingPerSecond: number) {
    this.quick = quick
    this.receiver = receiver
    this.bare = new BareLoop(receiver, ceilingPerSecond)
    this.servers = new Servers(this.size(512, 128))
  }

  static async open(quick: boolean): Promise<Bench> {
    const receiver = await Receiver.start()
    const bench = new Bench(quick, receiver, await measureCeiling(receiver))
    // Everything is compared with it, and its first rounds are half as fast as those after a second.
    await bench.bare.run(BARE_WARMUP)
    return bench
  }

  /** A size for a full run, or for a quick one. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full
  }

  get turns(): RaceTurns {
    const [rounds, roundMs, mostMs] = this.quick ? [3, 100, 1500] : [9, 700, 30_000]
    return { warmups: 2, rounds, roundMs, mostMs }
  }

  async close(): Promise<void> {
    await this.bare.close()
    await this.receiver.close()
    await this.servers.close()
  }
}
