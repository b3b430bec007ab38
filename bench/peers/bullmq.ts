/** BullMQ with a worker that makes the bare loop's requests. */

import type { Bench } from "../harness/bench.ts"
import { CONNECTIONS } from "../harness/settings.ts"
import { loadPeer } from "./install.ts"
import { type Peer, runPeer } from "./peer.ts"

interface Job {
  readonly data: unknown
}

interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => {
    add(name: string, data: unknown, options: object): Promise<unknown>
    addBulk(jobs: readonly { name: string; data: unknown; opts: object }[]): Promise<unknown>
    close(): Promise<void>
  }
  readonly Worker: new (
    name: string,
    work: (job: Job) => Promise<void>,
    options: object,
  ) => { on(event: "completed", listener: () => void): void; close(): Promise<void> }
}

/** Finished jobs are removed, which is faster. Concurrent adds share a write to the socket. */
const JOB = { name: "message", opts: { removeOnComplete: true } }

export async function openBullMq(bench: Bench): Promise<Peer> {
  const { Queue, Worker } = loadPeer<BullMq>("bullmq")
  const url = new URL(await bench.servers.keepingRedis())
  const connection = { host: url.hostname, port: Number(url.port), enableAutoPipelining: true }
  const queue = new Queue("bench", { connection })
  const work = ({ data }: Job) => bench.bare.request(JSON.stringify(data))
  const worker = new Worker("bench", work, {
    connection: { ...connection, maxRetriesPerRequest: null },
    concurrency: CONNECTIONS,
  })
  let completed = () => {}
  worker.on("completed", () => completed())
  return {
    run: (count, batch) =>
      runPeer(bench, count, batch, {
        add: (payloads) =>
          payloads.length === 1
            ? queue.add(JOB.name, payloads[0], JOB.opts)
            : queue.addBulk(payloads.map((data) => ({ ...JOB, data }))),
        onCompleted: (listener) => {
          completed = listener
        },
      }),
    close: async () => {
      await worker.close()
      await queue.close()
    },
  }
}
