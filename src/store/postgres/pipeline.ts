/**
 * What a process does with its lanes, one statement after the other: settle, then give back, then fetch. A fetch that ran beside a
 * settle of the same lane would see the lane as it is after it and the deliveries as they were before it, and send one twice.
 */
import type { GivenBack, LaneFetch, LaneWork, Settlement, SettleResult } from "../store.ts"
import { Batcher } from "./batcher.ts"
import type { Context } from "./context.ts"
import { fetch } from "./lanes.ts"
import { giveBack, settle } from "./settle.ts"

/** Lanes are dealt out to so many pipelines, each with a connection of its own. */
const PIPELINES = 2
const MOST_AT_ONCE = 500

type Job =
  | { readonly kind: "settle"; readonly settlement: Settlement }
  | { readonly kind: "give-back"; readonly claim: GivenBack }
  | { readonly kind: "fetch"; readonly lane: LaneFetch; readonly now: number }
type Done = SettleResult | LaneWork | undefined

export class Pipelines {
  readonly #pipelines: readonly Batcher<Job, () => Done>[]

  constructor(context: Context) {
    this.#pipelines = Array.from(
      { length: PIPELINES },
      () => new Batcher((jobs) => work(context, jobs), { atOnce: 1, most: MOST_AT_ONCE, gatherMs: 3 }),
    )
  }

  settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    return this.#all(settlements, (settlement) => ({ kind: "settle", settlement }))
  }

  async giveBack(claims: readonly GivenBack[]): Promise<void> {
    await this.#all(claims, (claim) => ({ kind: "give-back", claim }))
  }

  fetch(lanes: readonly LaneFetch[], now: number): Promise<LaneWork[]> {
    return this.#all(lanes, (lane) => ({ kind: "fetch", lane, now }))
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
    settle(
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
      Math.max(...of.map(({ now }) => now)),
    ),
  )
  return jobs.map((job) => answers.get(job)!)
}
