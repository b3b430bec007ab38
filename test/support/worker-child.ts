/**
 * A process that only delivers, on the servers it is told. If asked to, it says what it takes and what it settles, straight into the
 * pipe, before it goes on: whatever happens to it next, the test knows what it had in hand.
 */
import { writeSync } from "node:fs"
import pg from "pg"
import { openPosthorn } from "../../src/posthorn.ts"
import type { Store } from "../../src/store/store.ts"
import type { WorkerOptions, WorkerOrder } from "./workers.ts"
import { wrapLanes } from "./wrap-lanes.ts"

const { leaseMs, tells, ...options } = JSON.parse(process.argv[2]!) as WorkerOptions

const say = (...words: readonly (string | number)[]) => void writeSync(1, `${words.join(" ")}\n`)

const telling = (store: Store): Store => ({
  ...store,
  openLane(claim, ...args) {
    const telling = wrapLanes(store, (session) => ({
      async fetch(want, at) {
        const work = await session.fetch(want, at)
        for (const { id } of work.deliveries) say("took", id, claim.token)
        return work
      },
      async settleIfClaimed(outcomes) {
        for (const { attempt } of outcomes) if (attempt !== null) say("settles", attempt.id, claim.token)
        const results = await session.settleIfClaimed(outcomes)
        for (const [i, { delivery }] of outcomes.entries()) say(results[i]!, delivery.id)
        return results
      },
    }))
    return telling.openLane(claim, ...args)
  },
})

let statements = 0
const { query } = pg.Client.prototype
// Every statement goes through this method, those of pools and of transactions too.
pg.Client.prototype.query = function (this: pg.Client, ...args: never[]) {
  statements++
  return Reflect.apply(query, this, args)
} as typeof query

process.on("message", (order: WorkerOrder) => {
  if (order.kind === "count") return say("statements", order.number, statements)
  const until = performance.now() + order.ms
  say("blocked")
  while (performance.now() < until) {}
})

const posthorn = await openPosthorn(
  { logger: "warn", egress: { allow: ["127.0.0.0/8"], ports: "any" }, closeTimeoutMs: 2000, ...options },
  { leaseMs, ...(tells ? { wrapStore: telling } : {}) },
)
process.once("SIGTERM", async () => {
  await posthorn.close()
  process.disconnect()
})
say("ready")
