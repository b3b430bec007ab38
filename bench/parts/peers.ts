/** Posthorn against queues that people build webhooks on: the same payloads, the same requests, each with its own store. */
import type { PosthornOptions } from "../../src/index.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { race } from "../harness/rounds.ts"
import { openBullMq } from "../peers/bullmq.ts"
import type { Peer } from "../peers/peer.ts"
import { openPgBoss } from "../peers/pgboss.ts"

/** Messages in one call, where many are given at once: in a full run, beside the figure, in which every call has one. */
const BULK = 100

async function measure(
  bench: Bench,
  name: string,
  openPeer: (bench: Bench) => Promise<Peer>,
  where: Partial<PosthornOptions>,
): Promise<Values> {
  const peer = await openPeer(bench)
  const library = await Library.open(bench.receiver, where)
  try {
    const traffic = await library.traffic("hundred", 100)
    // As Posthorn has been when it comes to this.
    await peer.run(bench.size(5000, 500), 1)
    const comparison = async (figure: string, batch: number) => {
      const { posthorn, other } = await race(
        { posthorn: (count) => traffic.run(count, batch), other: (count) => peer.run(count, batch) },
        bench.turns,
      )
      return compared(figure, posthorn, "peer", other)
    }
    return {
      ...(await comparison(name, 1)),
      ...(bench.quick ? {} : await comparison(`${name}.bulk`, BULK)),
    }
  } finally {
    await library.close()
    await peer.close()
  }
}

export const peerParts: readonly Part[] = [
  { names: ["peers.bullmq.ratio"], run: (bench) => measure(bench, "peers.bullmq", openBullMq, {}) },
  {
    names: ["peers.pgboss.ratio"],
    run: async (bench) =>
      measure(bench, "peers.pgboss", openPgBoss, { store: await bench.servers.database("peers_posthorn") }),
  },
]
