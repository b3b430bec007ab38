/** The context of every part: the size of the run, a receiver, the bare loop and servers. */
import { BareLoop } from "./bare-loop.ts"
import { measureCeiling } from "./ceiling.ts"
import { Library } from "./library.ts"
import { Receiver } from "./receiver.ts"
import type { RaceTurns } from "./rounds.ts"
import { Servers } from "./servers.ts"

/** Numbers by dotted names: the figures, and the values from which they are computed. */
export type Values = { readonly [name: string]: number }

export interface Part {
  /** Prefixes of the names of the figures that the part measures. */
  readonly names: readonly string[]
  /** Left out of a quick run of all parts: it compares design choices of Posthorn, not Posthorn with other systems. */
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
    // In the first second, rounds are half as fast.
    await bench.bare.run(bench.size(10_000, 5000))
    await warmUp(receiver, bench.size(10_000, 3000))
    return bench
  }

  /** The size in a full or a quick run. */
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

/** Compiles the code of Posthorn that all parts use on this thread. The store's thread starts anew with each file. */
async function warmUp(receiver: Receiver, messages: number): Promise<void> {
  const library = await Library.open(receiver)
  try {
    const traffic = await library.traffic("app", 100)
    await traffic.run(messages)
  } finally {
    await library.close()
  }
}
