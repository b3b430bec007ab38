/** Four workers, 200 endpoints of which 20 are ordered, and everything that can go wrong with them. */
import { setTimeout as pass } from "node:timers/promises"
import { describe, expect, onTestFinished, test } from "vitest"
import { hasCode } from "../../src/core/errors.ts"
import { seeded } from "../kill/random.ts"
import { rounds } from "../support/length.ts"
import { checkFence, startAudit } from "./audit.ts"
import { Crew } from "./faults.ts"
import { checkOutcome, type Request } from "./oracle.ts"
import { ON_OWN_SERVERS, Site } from "./site.ts"

const ENDPOINTS = 200
const ORDERED = 20
const SENDERS = 25
/** A quarter of the real one; how long a takeover takes with that is in takeover.test.ts. */
const LEASE_MS = 2000
/** Fewer than a quarter of the lanes: lanes go from hand to hand also while nothing happens. */
const MOST_LANES = 40
/** PostgreSQL restarts in every second round. More rounds follow until a frozen worker had outcomes to write. */
const ROUNDS = rounds(2, 12)
const MOST_ROUNDS = 4 * ROUNDS

/** Answers after some milliseconds, now and then with a failure, and keeps what it answered to whom. */
function answering(site: Site, uids: readonly string[], random: () => number): Request[] {
  const requests: Request[] = []
  for (const uid of uids)
    site.receiver.always(`/${uid}`, ({ id, at }, response) => {
      const status = random() < 0.03 ? 500 : 200
      requests.push({ uid, id, at, status })
      setTimeout(() => response.writeHead(status).end(), random() * 30)
    })
  return requests
}

/** Sends to each of its endpoints in turn, each message again and again until it is accepted; the answer ends it. */
function sending(site: Site, uids: readonly string[]) {
  const accepted = new Map(uids.map((uid) => [uid, [] as string[]]))
  let over = false
  onTestFinished(() => {
    over = true
  })
  const sendOn = async (sender: number) => {
    const own = uids.filter((_, i) => i % SENDERS === sender)
    for (let n = 0; !over; n++) {
      const uid = own[n % own.length]!
      const message = { eventType: uid, payload: { n }, idempotencyKey: `${uid} ${n}` }
      for (let id: string | null = null; id === null; ) {
        id = await site.sender.send("acme", message).then(
          (result) => result.id,
          (error) => {
            if (hasCode(error, "store_unavailable")) return null
            throw error
          },
        )
        if (id !== null) accepted.get(uid)!.push(id)
        // The pace: as much as the machine can do would only show how fast it is.
        await pass(id === null ? 50 : 30)
      }
    }
  }
  const all = Promise.all(Array.from({ length: SENDERS }, (_, sender) => sendOn(sender)))
  return {
    accepted,
    async stop() {
      over = true
      await all
    },
  }
}

describe.each(ON_OWN_SERVERS)("on %s", (_, ownServers) => {
  test(
    "kills, freezes, restarts and flushes: nothing lost, order kept, no outcome of a lost lease, no repeat without a cause",
    async () => {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const random = seeded(seed)
      const servers = await ownServers()
      const site = await Site.open(servers.place)
      await startAudit(await site.client())
      const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
      const ordered = uids.slice(0, ORDERED)
      for (const uid of uids) await site.endpoint(uid, { ordered: ordered.includes(uid) })
      const requests = answering(site, uids, random)
      const options = { count: 4, leaseMs: LEASE_MS, maxInFlight: MOST_LANES }
      const crew = await Crew.start(site, servers, options, random)
      const { accepted, stop } = sending(site, uids)

      const going: Promise<void>[] = []
      const begin = (fault: Promise<void>) => {
        going.push(fault)
        // Looked at in the end.
        fault.catch(() => {})
      }
      const stale = () =>
        crew.workers.flatMap(({ told }) => told.filter(({ word }) => word === "stale")).length
      for (let round = 0; round < ROUNDS || (stale() === 0 && round < MOST_ROUNDS); round++) {
        for (const fault of [() => crew.kill(), () => crew.freeze(), () => crew.flushRedis()]) {
          begin(fault())
          await pass(300 + random() * 700)
        }
        if (round % 2 === 1) {
          begin(crew.restartPostgres())
          await pass(500)
        }
      }
      await Promise.all(going)
      await stop()

      const total = [...accepted.values()].flat().length
      await expect
        .poll(() => site.sender.stats().catch(() => null), { timeout: 20_000 })
        .toEqual({ pending: 0, failed: 0, delivered: total, dead: 0, calledOff: 0 })
      const { faults, workers } = crew
      const client = await site.client()
      const repeats = await checkOutcome(client, { accepted, ordered, requests, faults, workers })
      await checkFence(client, workers)
      for (const { pid, hasEnded, program } of workers)
        if (!faults.some((fault) => fault.kind === "killed" && fault.pid === pid))
          expect(hasEnded, program.stderr).toBe(false)
      // The faults hit requests in flight, and frozen workers tried to write after a takeover.
      expect(total, `seed ${seed}`).toBeGreaterThan(1000)
      expect(repeats, `seed ${seed}`).toBeGreaterThan(0)
      expect(stale(), `seed ${seed}`).toBeGreaterThan(0)
    },
    45_000 * ROUNDS,
  )
})
