/** What every part is given: how much to measure, a receiver, the bare loop and servers. */
import { BareLoop } from "./bare-loop.ts"
import { measureCeiling } from "./ceiling.ts"
import { Library } from "./library.ts"
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

export class Bench {
  readonly quick: boolean
  readonly receiver: Receiver
  readonly bare: BareLoop
  readonly servers: Servers

  private constructor(quick: boolean, receiver: Receiver, ceilingPerSecond: number) {
    this.quick = quick
    this.receiver = receiver
    this.bare = new BareLoop(receiver, ceilingPerSecond)
    this.servers = new Servers(this.size(512, 64))
  }

  static async open(quick: boolean): Promise<Bench> {
    const receiver = await Receiver.start()
    const bench = new Bench(quick, receiver, await measureCeiling(receiver))
    // The first rounds of each are half as fast as those after a second.
    await bench.bare.run(bench.size(10_000, 5000))
    await warmUp(receiver, bench.size(10_000, 3000))
    return bench
  }

  /** A size for a full run, or for a quick one. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full
  }

  get turns(): RaceTurns {
    const [rounds, roundMs, mostMs] = this.quick ? [5, 100, 1200] : [9, 700, 30_000]
    return { warmups: 2, rounds, roundMs, mostMs }
  }

  async close(): Promise<void> {
    await this.bare.close()
    await this.receiver.close()
    await this.servers.close()
  }
}

/** What of Posthorn every part needs, on this thread; the store's own thread begins anew with each file. */
async function warmUp(receiver: Receiver, messages: number): Promise<void> {
  const library = await Library.open(receiver)
  try {
    const traffic = await library.traffic("app", 100)
    await traffic.run(messages)
  } finally {
    await library.close()
  }
}
