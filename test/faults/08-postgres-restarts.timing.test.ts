/**
 * Fault 8: PostgreSQL is restarted again and again, each time as in a crash. No worker ends, nothing is lost, and soon after
 * everything is as fast as before. The table's five to ten seconds between restarts are scaled to about one.
 */
import { describe, expect, onTestFinished, test } from "vitest"
import { hasCode } from "../../src/core/errors.ts"
import { ON_OWN_SERVERS, Site } from "../multi-process/site.ts"
import { rounds } from "../support/length.ts"
import type { WorkerProcess } from "../support/workers.ts"

const ENDPOINTS = 10
const ORDERED = 2
/** Two workers, each with room for fewer lanes than there are: neither can do the work alone. */
const LANES_PER_WORKER = 6
const RESTARTS = rounds(3, 20)
/** Less than a lease: lanes of a worker that hangs would be taken over later than this. */
const RECOVERED_MS = 5000
const PROMPT_MS = 1000
const BURST = 600
/** The steady load while PostgreSQL restarts, as a part of what the workers can do: a message that is late was not waiting for others. */
const LOAD = 0.25
const AS_FAST_AS_BEFORE = 0.7

describe.each(ON_OWN_SERVERS)("on %s", (_, servers) => {
  test("workers stay, nothing is lost or out of order, new messages are delivered within five seconds, and as fast as before", {
    timeout: 60_000 + RESTARTS * 5000,
  }, async () => {
    const { postgres, place } = await servers()
    const site = await Site.open(place)
    const uids = Array.from({ length: ENDPOINTS }, (_, i) => `endpoint-${i}`)
    for (const [i, uid] of uids.entries()) await site.endpoint(uid, { ordered: i < ORDERED })
    const startWorkers = () =>
      Promise.all([1, 2].map(() => site.worker({ tells: true, maxInFlight: LANES_PER_WORKER })))
    const workers = await startWorkers()
    /** By endpoint, in order: what was accepted, and when. */
    const accepted = new Map(uids.map((uid) => [uid, [] as { id: string; at: number }[]]))
    const accept = (uid: string, id: string) => accepted.get(uid)!.push({ id, at: performance.now() })
    const received = (uid: string) => new Set(site.receiver.to(`/${uid}`).map(({ id }) => id)).size
    const allArrived = async () => {
      for (const uid of uids)
        for (let count = accepted.get(uid)!.length; received(uid) < accepted.get(uid)!.length; count++)
          await site.receiver.arrived(`/${uid}`, count)
    }
    /** Deliveries in a second: the best of three bursts to all endpoints. */
    const speed = async (): Promise<number> => {
      const speeds: number[] = []
      while (speeds.length < 3) {
        const from = performance.now()
        const messages = Array.from({ length: BURST }, (_, n) => ({
          eventType: uids[n % ENDPOINTS]!,
          payload: n,
        }))
        const sent = await site.sender.sendBatch("acme", messages)
        for (const [n, { id }] of sent.entries()) accept(uids[n % ENDPOINTS]!, id)
        await allArrived()
        speeds.push((BURST / (performance.now() - from)) * 1000)
      }
      return Math.max(...speeds)
    }
    const before = await speed()
    const paceMs = (ENDPOINTS / (before * LOAD)) * 1000

    let stopped = false
    onTestFinished(() => {
      stopped = true
    })
    /** One line of messages, each sent again under the same key until it is accepted. */
    const sendOn = async (uid: string) => {
      for (let n = 0; !stopped; n++) {
        const message = { eventType: uid, payload: n, idempotencyKey: `${uid} ${n}` }
        for (let id: string | null = null; id === null; ) {
          id = await site.sender.send("acme", message).then(
            (result) => result.id,
            (error) => {
              if (hasCode(error, "store_unavailable")) return null
              throw error
            },
          )
          if (id !== null) accept(uid, id)
          await pass(paceMs)
        }
      }
    }
    const sending = Promise.all(uids.map(sendOn))
    for (let restart = 0; restart < RESTARTS; restart++) {
      await pass(700 + Math.random() * 800)
      await postgres.restart("immediate")
    }
    const restartedAt = performance.now()
    await pass(RECOVERED_MS)
    const recoveredAt = performance.now()
    await pass(PROMPT_MS)
    stopped = true
    await sending
    await allArrived()

    /** How late each was received, counted from when it could be sent at the earliest. */
    const lateness = uids.flatMap((uid) => {
      const arrivals = new Map(
        site.receiver
          .to(`/${uid}`)
          .map(({ id, at }) => [id, at])
          .reverse() as [string, number][],
      )
      return accepted
        .get(uid)!
        .map(({ id, at }) => ({ at, ms: arrivals.get(id)! - Math.max(at, restartedAt) }))
    })
    const latest = (from: number) => Math.max(...lateness.filter(({ at }) => at >= from).map(({ ms }) => ms))
    expect(latest(0)).toBeLessThan(RECOVERED_MS)
    expect(latest(recoveredAt)).toBeLessThan(PROMPT_MS)

    const applied = ({ told }: WorkerProcess) => told.filter(({ word }) => word === "applied").length
    const appliedBefore = workers.map(applied)
    const after = await speed()
    for (const [i, worker] of workers.entries()) {
      expect(worker.hasEnded, worker.program.stderr).toBe(false)
      expect(applied(worker)).toBeGreaterThan(appliedBefore[i]! + BURST / 10)
    }
    const total = [...accepted.values()].flat().length
    await expect
      .poll(() => site.sender.stats(), { timeout: 15_000 })
      .toEqual({ pending: 0, failed: 0, delivered: total, dead: 0, calledOff: 0 })
    // Shared machines are half as fast from one minute to the next: workers that saw no restart tell how fast this one is now.
    await Promise.all(workers.map((worker) => worker.close()))
    await startWorkers()
    const fresh = await speed()
    expect(after).toBeGreaterThanOrEqual(Math.min(before, fresh) * AS_FAST_AS_BEFORE)

    for (const [i, uid] of uids.entries()) {
      const sent = accepted.get(uid)!.map(({ id }) => id)
      const ids = site.receiver.to(`/${uid}`).map(({ id }) => id)
      // A repeat, if there is one, follows the request that it repeats.
      const once = ids.filter((id, n) => ids.indexOf(id) === n)
      if (i < ORDERED) expect(once).toEqual(sent)
      else expect(once.sort()).toEqual(sent.sort())
      if (i < ORDERED) expect(ids.filter((id, n) => n > 0 && id !== ids[n - 1])).toEqual(once.slice(1))
    }
  })
})

/** The pace of the senders, and the time between two restarts: time itself is what passes here. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
