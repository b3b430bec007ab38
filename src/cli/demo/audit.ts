/** Compares the sender's receipts, the store and the receivers' own counts. */
import { ENDPOINTS, ORDERED } from "./endpoints.ts"
import type { Receipt } from "./engine.ts"
import type { DemoReceiver } from "./receiver.ts"
import type { DemoState, StoreSnapshot } from "./state.ts"

/** Observations of the scenario. */
export interface AuditFacts {
  /** The messages that were acknowledged to the sender. */
  readonly receipts: readonly Receipt[]
  /** The dead letters before the replay, and the number that was replayed. */
  readonly dead: StoreSnapshot["deliveries"]
  readonly replayed: number
}

export interface Audit {
  readonly summary: readonly { readonly name: string; readonly text: string }[]
  /** Discrepancies; empty if there are none. */
  readonly problems: readonly string[]
}

export function audit(state: DemoState, receiver: DemoReceiver, facts: AuditFacts): Audit {
  const figures = count(state, receiver, facts)
  return { summary: summarise(figures, facts), problems: findProblems(figures, facts) }
}

type Figures = ReturnType<typeof count>

function count({ snapshot, uids }: DemoState, receiver: DemoReceiver, { receipts }: AuditFacts) {
  const { deliveries, attempts, counts } = snapshot
  const accepted = receipts.filter(({ duplicate }) => !duplicate)
  const attemptsThat = (status: string) => attempts.filter((attempt) => attempt.status === status).length
  return {
    counts,
    accepted: accepted.map(({ id }) => id),
    promised: accepted.reduce((sum, { matched }) => sum + matched, 0),
    stored: new Set(deliveries.map(({ messageId }) => messageId)),
    deliveries: deliveries.length,
    attempts: attempts.length,
    succeeded: attemptsThat("succeeded"),
    failed: attemptsThat("failed"),
    cutOff: attemptsThat("unknown"),
    answered: attempts.filter(({ responseStatus }) => responseStatus !== null).length,
    /** "endpoint message" pairs, from the store and from the receivers. */
    delivered: deliveries
      .filter(({ status }) => status === "delivered")
      .map(({ endpointId, messageId }) => `${uids.get(endpointId)} ${messageId}`),
    taken: new Set(
      ENDPOINTS.flatMap(({ uid }) => [...receiver.tally(uid).taken.keys()].map((id) => `${uid} ${id}`)),
    ),
    requests: receiver.total(({ requests }) => requests),
    duplicates: receiver.total(({ repeats }) => repeats),
    forged: receiver.total(({ forged }) => forged),
    order: [...receiver.tally(ORDERED).taken.values()],
  }
}

function findProblems(figures: Figures, { dead, replayed }: AuditFacts): string[] {
  const { counts, promised, taken, requests, attempts, answered, order } = figures
  const open = counts.pending + counts.failed
  const missing = figures.delivered.filter((pair) => !taken.has(pair))
  const checks: [holds: boolean, problem: string][] = [
    [figures.accepted.every((id) => figures.stored.has(id)), "an accepted message is not in the store"],
    [figures.deliveries === promised, `${promised} deliveries promised, ${figures.deliveries} in the store`],
    [open === 0, `${open} deliveries are still open`],
    [dead.length === replayed, `${dead.length} were dead, ${replayed} were replayed`],
    [counts.dead === 0, `${counts.dead} are dead after the replay`],
    [counts.delivered === promised, `${counts.delivered} of ${promised} are delivered`],
    [missing.length === 0, `delivered, but not at the receiver: ${missing.join(", ")}`],
    [taken.size === promised, `the receivers took ${taken.size} events, not ${promised}`],
    // A request that the kill cut off may have reached its receiver; an answered request has.
    [answered <= requests && requests <= attempts, `${requests} requests seen, ${attempts} attempts logged`],
    [figures.forged === 0, `${figures.forged} requests had a wrong signature`],
    [order.every((n, i) => n === i + 1), `${ORDERED} is ordered and took ${numbers(order)}`],
  ]
  return checks.filter(([holds]) => !holds).map(([, problem]) => problem)
}

function summarise(figures: Figures, { receipts, dead, replayed }: AuditFacts): Audit["summary"] {
  const { counts, accepted, promised, attempts, succeeded, failed, cutOff, requests, taken } = figures
  const atOnce = counts.delivered - replayed
  const repeated = receipts.length - accepted.length
  const byReason = Object.entries(Object.groupBy(dead, ({ deadReason }) => String(deadReason)))
  const reasons = byReason.map(([reason, rows]) => `${rows!.length} ${reason}`).join(", ")
  const rows = {
    accepted: `${accepted.length} messages for ${promised} deliveries; ${repeated} repeat known by its key`,
    delivered: `${counts.delivered}: ${atOnce} at the first or a later try, ${replayed} after the replay`,
    dead: `${counts.dead} left; ${dead.length} were (${reasons}), ${replayed} replayed`,
    attempts: `${attempts}: ${succeeded} succeeded, ${failed} failed, ${cutOff} cut off by kill -9`,
    receiver: `${requests} requests: ${taken.size} events, ${figures.duplicates} duplicates known by id`,
    order: `${ORDERED} took ${numbers(figures.order)}, although #1 failed twice`,
  }
  return Object.entries(rows).map(([name, text]) => ({ name, text }))
}

function numbers(order: readonly number[]): string {
  return order.map((n) => `#${n}`).join(" ")
}
