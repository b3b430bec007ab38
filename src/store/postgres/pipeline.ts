/**
 * What a process does with its lanes, one statement after the other: settle, then give back, then fetch. A fetch that ran beside a
 * settle of the same lane would see the lane as it is after it and the deliveries as they were before it, and send one twice.
 */
import type { Moment } from "../../core/clock.ts"
import type { GivenBack, LaneFetch, LaneWork, Settlement, SettleResult } from "../store.ts"
import { Batcher } from "./batcher.ts"
import type { Context } from "./context.ts"
import { isDelivered, settleDelivered } from "./delivered.ts"
import { type AskedLane, fetch } from "./lanes.ts"
import { giveBack, settle } from "./settle.ts"

/** Lanes are dealt out to so many pipelines, each with a connection of its own. */
const PIPELINES = 2
const BATCHES = { atOnce: 1, most: 500, gatherMs: 3 }

type Job =
  | { readonly kind: "settle"; readonly settlement: Settlement }
  | { readonly kind: "give-back"; readonly claim: GivenBack }
  | { readonly kind: "fetch"; readonly lane: AskedLane; readonly at: Moment }
type Done = SettleResult | LaneWork | undefined

export class Pipelines {
  readonly #context: Context
  readonly #pipelines: readonly Batcher<Job, () => Done>[]
  /** Beside them: what was handed over is in no lane's row, and needs no turn with it. */
  readonly #delivered: Batcher<Settlement, boolean>

  constructor(context: Context) {
    this.#context = context
    this.#delivered = new Batcher((settlements) => settleDelivered(context, settlements), BATCHES)
    this.#pipelines = Array.from(
      { length: PIPELINES },
      () => new Batcher((jobs) => work(context, jobs), BATCHES),
    )
  }

  settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const [first, ...others] = settlements
    // Each is settled by itself, so that no lane waits for another: what is kept of each until it is written should be little.
    if (first !== undefined && others.length === 0) return this.#settle(first).then(asList)
    return Promise.all(settlements.map((settlement) => this.#settle(settlement)))
  }

  async #settle(settlement: Settlement): Promise<SettleResult> {
    const { hands } = this.#context
    const { endpointId, token, seq, change } = settlement
    if (change.disableEndpoint || change.holdLaneUntil !== null) hands.close(endpointId)
    hands.startSettling(endpointId, token)
    try {
      const isBeside = isDelivered(settlement) && hands.has(endpointId, token, seq)
      const isWritten = isBeside && (await this.#delivered.add(settlement))
      const result = isWritten ? "applied" : await this.#inTurn(settlement)
      if (result === "busy") hands.keep(endpointId, token)
      else hands.letGo(endpointId, token, seq)
      return result
    } catch (error) {
      hands.keep(endpointId, token)
      throw error
    } finally {
      hands.endSettling(endpointId)
    }
  }

  async #inTurn(settlement: Settlement): Promise<SettleResult> {
    return (await this.#of(settlement.endpointId).add({ kind: "settle", settlement }))() as SettleResult
  }

  async giveBack(claims: readonly GivenBack[]): Promise<void> {
    const { hands } = this.#context
    // It is due again, and goes before whatever comes.
    for (const { endpointId } of claims) hands.close(endpointId)
    await this.#all(claims, (claim) => ({ kind: "give-back", claim }))
  }

  async fetch(lanes: readonly LaneFetch[], now: number, wall = now): Promise<LaneWork[]> {
    const { hands } = this.#context
    const asked = lanes.map((lane) => ({
      ...lane,
      settling: hands.settling(lane.endpointId),
      isOpen: hands.isOpen(lane.endpointId, lane.token),
    }))
    for (const { endpointId, isOpen } of asked) if (!isOpen) hands.close(endpointId)
    // What is on its way to a lane arrives before it looks for it, and before it is told that there is no more.
    await hands.decided(asked.filter(({ isOpen }) => !isOpen).map(({ endpointId }) => endpointId))
    const at = { now, wall }
    const works = await this.#all<AskedLane, LaneWork>(asked, (lane) => ({ kind: "fetch", lane, at })).catch(
      async (error) => {
        // Whoever asked takes the lane to be closed; the answer that it did not get may have opened it.
        for (const { endpointId } of lanes) hands.close(endpointId)
        await hands.decided(lanes.map(({ endpointId }) => endpointId))
        throw error
      },
    )
    await hands.decided(works.filter(({ open }) => !open).map(({ endpointId }) => endpointId))
    return works
  }

  async #all<T extends { readonly endpointId: string }, R extends Done>(
    items: readonly T[],
    toJob: (item: T) => Job,
  ): Promise<R[]> {
    const answers = await Promise.all(items.map((item) => this.#of(item.endpointId).add(toJob(item))))
    return answers.map((answer) => answer() as R)
  }

  #of(endpointId: string): Batcher<Job, () => Done> {
    return this.#pipelines[endpointId.charCodeAt(endpointId.length - 1) % PIPELINES]!
  }
}

const asList = (result: SettleResult) => [result]

/** Each kind succeeds or fails for itself; the answer is given, or thrown, to whoever asked. */
async function work(context: Context, jobs: readonly Job[]): Promise<(() => Done)[]> {
  const answers = new Map<Job, () => Done>()
  const run = async <K extends Job["kind"], R extends Done>(
    kind: K,
    write: (of: Extract<Job, { kind: K }>[]) => Promise<readonly R[]>,
  ) => {
    const of = jobs.filter((job): job is Extract<Job, { kind: K }> => job.kind === kind)
    if (of.length === 0) return
    try {
      const results = await write(of)
      for (const [i, job] of of.entries()) answers.set(job, () => results[i])
    } catch (error) {
      for (const job of of)
        answers.set(job, () => {
          throw error
        })
    }
  }
  await run("settle", (of) =>
    settleAll(
      context,
      of.map(({ settlement }) => settlement),
    ),
  )
  await run("give-back", async (of) => {
    await giveBack(
      context,
      of.map(({ claim }) => claim),
    )
    return []
  })
  await run("fetch", (of) =>
    fetch(
      context,
      of.map(({ lane }) => lane),
      of.map(({ at }) => at).reduce((latest, at) => (at.now > latest.now ? at : latest)),
    ),
  )
  return jobs.map((job) => answers.get(job)!)
}

async function settleAll(context: Context, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const delivered = settlements.filter(isDelivered)
  const written = delivered.length === 0 ? [] : await settleDelivered(context, delivered)
  const isWritten = new Set(delivered.filter((_, i) => written[i]))
  const others = settlements.filter((settlement) => !isWritten.has(settlement))
  const results = others.length === 0 ? [] : await settle(context, others)
  return settlements.map((settlement) => (isWritten.has(settlement) ? "applied" : results.shift()!))
}
