/** Invariants after all faults: nothing lost, order kept, and no repeat without a cause. */
import type pg from "pg"
import { expect } from "vitest"
import type { WorkerProcess } from "../support/workers.ts"
import type { Fault } from "./faults.ts"

/** A request as the receiver saw it. */
export interface Request {
  readonly uid: string
  readonly id: string
  readonly at: number
  readonly status: number
}

export interface Evidence {
  /** By endpoint, in the order in which they were sent. */
  readonly accepted: ReadonlyMap<string, readonly string[]>
  readonly ordered: readonly string[]
  readonly requests: readonly Request[]
  readonly faults: readonly Fault[]
  readonly workers: readonly WorkerProcess[]
}

/** How many requests were repeats of what had been taken. */
export async function checkOutcome(client: pg.Client, evidence: Evidence): Promise<number> {
  const { accepted, ordered, requests } = evidence
  await checkRows(client, accepted)
  const byEndpoint = Map.groupBy(requests, ({ uid }) => uid)
  const takers = await takersOf(client, evidence.workers)
  let repeats = 0
  for (const [uid, ids] of accepted) {
    const own = byEndpoint.get(uid) ?? []
    const taken = new Set(own.filter(({ status }) => status === 200).map(({ id }) => id))
    expect(taken, `${uid}: what was taken`).toEqual(new Set(ids))
    if (ordered.includes(uid)) checkOrder(ids, own, evidence, takers)
    for (const [id, same] of Map.groupBy(own, (request) => request.id)) {
      for (const [i, { status, at }] of same.slice(0, -1).entries()) {
        if (status !== 200) continue
        repeats++
        const cause = causeOf(evidence, takers.get(`${uid} ${id}`) ?? new Set(), at, same[i + 1]!.at)
        expect(cause, `${uid} got ${id} again for no reason, ${same[i + 1]!.at - at} ms later`).toBeDefined()
      }
    }
  }
  return repeats
}

/** Every accepted message has one row, delivered, with one success in its log; and nothing else is there or in anybody's hands. */
async function checkRows(client: pg.Client, accepted: Evidence["accepted"]): Promise<void> {
  const { rows } = await client.query(`
    SELECT e.uid, d.message_id, d.status,
           (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id AND a.status = 'succeeded')::int AS successes
      FROM webhook_deliveries d JOIN endpoints e ON e.id = d.webhook_id ORDER BY d.seq`)
  expect(rows.filter(({ status, successes }) => status !== "delivered" || successes !== 1)).toEqual([])
  const found = Map.groupBy(rows, ({ uid }) => uid as string)
  for (const [uid, ids] of accepted)
    expect(found.get(uid)?.map(({ message_id }) => message_id) ?? [], uid).toEqual(ids)
  expect((await client.query("SELECT id FROM lanes WHERE sending <> '{}'")).rows).toEqual([])
}

/** Nothing is sent before what was accepted before it; going back is only a worker that was frozen in the middle of a request. */
function checkOrder(
  ids: readonly string[],
  requests: readonly Request[],
  evidence: Evidence,
  takers: Takers,
): void {
  const place = new Map(ids.map((id, i) => [id, i]))
  let furthest = 0
  for (const { uid, id, at } of requests) {
    const here = place.get(id)!
    if (here < furthest) {
      const own = takers.get(`${uid} ${id}`) ?? new Set()
      const frozen = evidence.faults.some(({ kind, pid }) => kind === "frozen" && own.has(pid!))
      const before = requests.some((other) => other.id === id && other.status === 200 && other.at < at)
      expect(frozen && before, `${uid} got number ${here} after number ${furthest}`).toBe(true)
    }
    expect(here, `${uid}: one was left out before ${id}`).toBeLessThanOrEqual(furthest + 1)
    furthest = Math.max(furthest, here)
  }
}

type Takers = ReadonlyMap<string, ReadonlySet<number>>

/** Which workers had each delivery in their hands at some time. */
async function takersOf(client: pg.Client, workers: readonly WorkerProcess[]): Promise<Takers> {
  const { rows } = await client.query(
    "SELECT d.id, e.uid, d.message_id FROM webhook_deliveries d JOIN endpoints e ON e.id = d.webhook_id",
  )
  const names = new Map(rows.map(({ id, uid, message_id }) => [id, `${uid} ${message_id}`]))
  const takers = new Map<string, Set<number>>()
  for (const { pid, told } of workers)
    for (const line of told) {
      if (line.word !== "took") continue
      const name = names.get(line.deliveryId)!
      takers.set(name, (takers.get(name) ?? new Set()).add(pid))
    }
  return takers
}

/** A fault at that time that hit a worker which had it, or the database that was to write it down. Redis is no excuse. */
function causeOf(
  { faults }: Evidence,
  takers: ReadonlySet<number>,
  at: number,
  again: number,
): Fault | undefined {
  return faults.find(
    ({ kind, from, until, pid }) =>
      until + MOMENT_MS >= at &&
      from <= again &&
      (kind === "postgres restarted" || (pid !== null && takers.has(pid))),
  )
}

/** From when a process is killed, or goes on, until what it had on its way has been read: on a busy machine that takes its time. */
const MOMENT_MS = 1000
