/** Posthorn against job queues that are used for webhooks: the same payloads and requests, each with its own store. */
import type { PosthornOptions } from "../../src/index.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { Library } from "../harness/library.ts"
import { race } from "../harness/rounds.ts"
import { openBullMq } from "../peers/bullmq.ts"
import type { Peer } from "../peers/peer.ts"
import { openPgBoss } from "../peers/pgboss.ts"

/** Messages in each call of the batch values, which a full run reports beside the figure with one message in each call. */
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
    // Warmed up, as Posthorn is at this point.
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
