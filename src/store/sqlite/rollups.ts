/** Roll-ups: sums of the attempts that a transaction settles, added to their rows once, before the commit. */
import { latencyBucketOf } from "../../core/latency.ts"
import type { FencedSettlement } from "../fence.ts"
import {
  ADD_TO_ROLLUP,
  COUNTER_COUNT,
  DEAD,
  HOUR_MS,
  LAST_ATTEMPT_NUMBER,
  NEW_ROLLUP,
  NO_SUMS,
  sumRollupsOf,
  toRollupSum,
} from "../rollups.ts"
import { SQLITE } from "./conditions.ts"
import type { Connection } from "./connection.ts"
import type { Operation } from "./context.ts"
import { Inserts } from "./inserts.ts"
import { readAll } from "./page.ts"

type Delivered = Pick<FencedSettlement, "endpointId" | "appId" | "eventType">

interface Sum {
  readonly key: readonly (string | number)[]
  readonly sums: number[]
  lastSuccessAt: number | null
  ageMinMs: number | null
  ageMaxMs: number | null
}

export class RollupSums {
  readonly #inserts: Inserts
  readonly #byKey = new Map<string, Sum>()

  constructor(connection: Connection) {
    const into = "INSERT OR FAIL INTO attempt_rollups AS r"
    this.#inserts = new Inserts(connection, into, NEW_ROLLUP, undefined, ADD_TO_ROLLUP)
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0
  }

  /** A settlement without an attempt counts only if the delivery was given up. */
  add(settlement: FencedSettlement, isGivenUp: boolean): void {
    const { attempt, payloadBytes, change, settledAt } = settlement
    if (attempt === null) {
      if (isGivenUp) this.addGivenUp(settlement, change.attemptCount, settledAt)
      return
    }
    const endedAt = attempt.startedAt + attempt.durationMs
    const sum = this.#sumOf(settlement, attempt.attemptNumber, endedAt)
    const succeeded = attempt.status === "succeeded"
    const counters = [
      1,
      Number(succeeded),
      Number(isGivenUp),
      Number(attempt.responseStatus === null),
      payloadBytes,
      attempt.responseBody?.length ?? 0,
      attempt.durationMs,
      1,
    ]
    for (const [i, value] of counters.entries()) sum.sums[i]! += value
    sum.sums[COUNTER_COUNT + latencyBucketOf(attempt.durationMs)]! += 1
    const ageMs = Math.max(attempt.startedAt - change.ageFrom, 0)
    sum.ageMinMs = Math.min(sum.ageMinMs ?? ageMs, ageMs)
    sum.ageMaxMs = Math.max(sum.ageMaxMs ?? ageMs, ageMs)
    if (succeeded) sum.lastSuccessAt = Math.max(sum.lastSuccessAt ?? 0, endedAt)
  }

  /** A delivery that was given up without an attempt. */
  addGivenUp(delivery: Delivered, attemptCount: number, at: number): void {
    this.#sumOf(delivery, attemptCount, at).sums[DEAD]! += 1
  }

  #sumOf({ endpointId, appId, eventType }: Delivered, attemptNumber: number, at: number): Sum {
    const hour = at - (at % HOUR_MS)
    const number = Math.min(attemptNumber, LAST_ATTEMPT_NUMBER)
    const name = `${endpointId} ${hour} ${number} ${eventType}`
    let sum = this.#byKey.get(name)
    if (sum === undefined) {
      const key = [endpointId, hour, eventType, number, appId]
      sum = { key, sums: [...NO_SUMS], lastSuccessAt: null, ageMinMs: null, ageMaxMs: null }
      this.#byKey.set(name, sum)
    }
    return sum
  }

  flush(): void {
    if (this.isEmpty) return
    for (const { key, sums, lastSuccessAt, ageMinMs, ageMaxMs } of this.#byKey.values())
      this.#inserts.add(...key, ...sums, lastSuccessAt, ageMinMs, ageMaxMs)
    this.#inserts.flush()
    this.#byKey.clear()
  }

  /** For a transaction that is rolled back. */
  drop(): void {
    this.#byKey.clear()
    this.#inserts.drop()
  }
}

export const sumRollups: Operation<"sumRollups"> = (context, filter, by) => {
  const { text, where } = sumRollupsOf(SQLITE, filter, by)
  return readAll(context, text, where).map((row) => toRollupSum(row, by))
}
