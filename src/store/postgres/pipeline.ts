/**
 * Runs the statements of a process's lanes one after the other: settle, give back, fetch. A fetch beside a settle of the same lane would see
 * the new lane and an old snapshot of its deliveries, and send one twice.
 */
import type { Moment } from "../../core/clock.ts"
import type { SettleResult } from "../store.ts"
import { Batcher } from "./batcher.ts"
import type { Context } from "./context.ts"
import { type AskedLane, fetch, type LaneAnswer } from "./lanes.ts"
import { type EndedClaim, type EndedSettlement, giveBack, settle } from "./settle.ts"

/** Lanes are distributed over pipelines, each with a connection of its own. */
const PIPELINES = 2
const BATCHES = { atOnce: 1, most: 500, gatherMs: 3 }

export interface FetchJob extends AskedLane {
  readonly at: Moment
}

type Job =
  | { readonly kind: "settle"; readonly ended: EndedSettlement; letGo(): void }
  | { readonly kind: "give-back"; readonly ended: EndedClaim; letGo(): void }
  | { readonly kind: "fetch"; readonly lane: FetchJob }
type Done = SettleResult | LaneAnswer | undefined

export class Pipelines {
  readonly #pipelines: readonly Batcher<Job, () => Done>[]
  /**
   * First attempts that succeed: a handed delivery is not in its lane's row and is never due again, so its settle may run beside fetches of
   * the lane. In one batcher the batches are twice as large (109 µs a delivery in two, 67 to 93 in one).
   */
  readonly #firstSuccesses: Batcher<EndedSettlement, SettleResult>

  constructor(context: Context) {
    this.#firstSuccesses = new Batcher((ended) => settleMeasured(context, ended), BATCHES)
    this.#pipelines = Array.from(
      { length: PIPELINES },
      () => new Batcher((jobs) => work(context, jobs), BATCHES),
    )
  }

  /** `letGo` is called when the claim has ended, before a fetch of the same batch, which may find the delivery due again. */
  async settle(ended: EndedSettlement, letGo: () => void): Promise<SettleResult> {
    if (ended.wasHanded && ended.claim.change.status === "delivered") {
      const result = await this.#firstSuccesses.add(ended)
      if (result !== "busy") letGo()
      return result
    }
    return this.#do(ended.claim.endpointId, { kind: "settle", ended, letGo }) as Promise<SettleResult>
  }

  async giveBack(ended: EndedClaim, letGo: () => void): Promise<void> {
    await this.#do(ended.claim.endpointId, { kind: "give-back", ended, letGo })
  }

  fetch(lane: FetchJob): Promise<LaneAnswer> {
    return this.#do(lane.endpointId, { kind: "fetch", lane }) as Promise<LaneAnswer>
  }

  async #do(endpointId: string, job: Job): Promise<Done> {
    const pipeline = this.#pipelines[endpointId.charCodeAt(endpointId.length - 1) % PIPELINES]!
    return (await pipeline.add(job))()
  }
}

async function settleMeasured(context: Context, ended: readonly EndedSettlement[]): Promise<SettleResult[]> {
  const { instruments } = context.database
  const startedAt = instruments.now()
  const results = await settle(context, ended)
  instruments.outcomesSettled(ended.length, instruments.now() - startedAt)
  return results
}

/** Each kind of job succeeds or fails by itself. A result returns or throws. */
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
      const done: readonly Job[] = of
      for (const [i, job] of done.entries()) {
        if (job.kind !== "fetch" && results[i] !== "busy") job.letGo()
        answers.set(job, () => results[i])
      }
    } catch (error) {
      for (const job of of)
        answers.set(job, () => {
          throw error
        })
    }
  }
  const endedOf = <E>(of: readonly { readonly ended: E }[]) => of.map(({ ended }) => ended)
  await run("settle", (of) => settleMeasured(context, endedOf(of)))
  await run("give-back", async (of) => {
    await giveBack(context, endedOf(of))
    return []
  })
  await run("fetch", (of) => {
    const lanes = of.map(({ lane }) => lane)
    const at = lanes.map((lane) => lane.at).reduce((latest, one) => (one.now > latest.now ? one : latest))
    return fetch(context, lanes, at)
  })
  return jobs.map((job) => answers.get(job)!)
}
