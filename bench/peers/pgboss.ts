/** pg-boss with workers that make the bare loop's requests. */
import { setTimeout as delay } from "node:timers/promises"
import type { Bench } from "../harness/bench.ts"
import type { Round } from "../harness/rounds.ts"
import { loadPeer } from "./install.ts"
import { type Peer, runPeer } from "./peer.ts"

interface Job {
  readonly id: string
  readonly data: object
}

interface Boss {
  on(event: "error", listener: (error: Error) => void): void
  start(): Promise<unknown>
  createQueue(name: string): Promise<void>
  send(name: string, data: object): Promise<unknown>
  insert(name: string, jobs: readonly { data: object }[]): Promise<unknown>
  fetch(name: string, options: { readonly batchSize: number }): Promise<Job[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
  stop(options: { readonly graceful: boolean }): Promise<void>
}

interface PgBoss {
  readonly PgBoss: new (options: object) => Boss
}

const QUEUE = "bench"
/** Settings of a fetch loop of our own, because pg-boss's workers wait at least 0.5 s between polls. These were the fastest. */
const FETCHERS = 2
const BATCH = 64
const EMPTY_QUEUE_MS = 2
const CONNECTIONS_TO_POSTGRES = 30

export async function openPgBoss(bench: Bench): Promise<Peer> {
  const { PgBoss } = loadPeer<PgBoss>("pg-boss")
  const connectionString = await bench.servers.database("peers_pgboss")
  const boss = new PgBoss({
    connectionString,
    max: CONNECTIONS_TO_POSTGRES,
    supervise: false,
    schedule: false,
  })
  boss.on("error", (error) => console.error(error.message))
  await boss.start()
  await boss.createQueue(QUEUE)
  return {
    run: (count, batch) => run(bench, boss, count, batch),
    close: () => boss.stop({ graceful: false }),
  }
}

/** Fetches jobs only in its own rounds, so that it does not disturb those of others. */
async function run(bench: Bench, boss: Boss, count: number, batch: number): Promise<Round> {
  let completed = () => {}
  let over = false
  const fetcher = async () => {
    while (!over) {
      const jobs = await boss.fetch(QUEUE, { batchSize: BATCH })
      if (jobs.length === 0) {
        await delay(EMPTY_QUEUE_MS)
        continue
      }
      await Promise.all(jobs.map(({ data }) => bench.bare.request(JSON.stringify(data))))
      const ids = jobs.map(({ id }) => id)
      await boss.complete(QUEUE, ids)
      for (const _ of ids) completed()
    }
  }
  const fetchers = Array.from({ length: FETCHERS }, fetcher)
  const round = runPeer(bench, count, batch, {
    add: (payloads) =>
      payloads.length === 1
        ? boss.send(QUEUE, payloads[0]!)
        : boss.insert(
            QUEUE,
            payloads.map((data) => ({ data })),
          ),
    onCompleted: (listener) => {
      completed = listener
    },
  })
  try {
    return await Promise.race([round, Promise.all(fetchers).then(() => round)])
  } finally {
    over = true
    await Promise.allSettled(fetchers)
  }
}
