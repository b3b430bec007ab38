/** What every part is given: how much to measure, a receiver, the bare loop and servers. */
import { BareLoop } from "./bare-loop.ts"
import { Receiver } from "./receiver.ts"
import type { RaceTurns } from "./rounds.ts"
import { Servers } from "./servers.ts"

/** Numbers by dotted names: the figures, and what they were made from. */
export type Values = { readonly [name: string]: number }

export interface Part {
  /** Of the figures that it measures, each a beginning of their names. */
  readonly names: readonly string[]
  run(bench: Bench): Promise<Values>
}

export class Bench {
  readonly quick: boolean
  readonly receiver: Receiver
  readonly bare: BareLoop
  readonly servers = new Servers()

  private constructor(quick: boolean, receiver: Receiver) {
    this.quick = quick
    this.receiver = receiver
    this.bare = new BareLoop(receiver)
  }

  static async open(quick: boolean): Promise<Bench> {
    return new Bench(quick, await Receiver.start())
  }

  /** A size for a full run, or for a quick one. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full
  }

  get turns(): RaceTurns {
    const [rounds, roundMs, mostMs] = this.quick ? [3, 120, 1500] : [9, 700, 30_000]
    return { warmups: 2, rounds, roundMs, mostMs }
  }

  async close(): Promise<void> {
    await this.bare.close()
    await this.receiver.close()
    await this.servers.close()
  }
}
