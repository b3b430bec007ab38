/** The count of deliveries that were given up, between the samples of the leader. */
import { firstHourOf } from "../core/attempt-window.ts"
import type { RollupSum, Store } from "../store/store.ts"
import { toSample, withSample } from "./history.ts"
import { MonitorLease } from "./lease.ts"

/** What a sample is made of. */
export function readSums(store: Pick<Store, "sumRollups">, now: number): Promise<RollupSum[]> {
  return store.sumRollups({ since: firstHourOf(now, 1), withShadows: false }, ["hour", "attemptNumber"])
}

/** As the leader would count now, in any process. */
export async function countDeaths(store: Store, now: number): Promise<number> {
  const { history } = await new MonitorLease(store, "").read(now)
  return withSample(history, toSample(now, await readSums(store, now))).dead
}
