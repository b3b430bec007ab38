/** The end of the demo: do the sender's ledger, the store and the receivers' own counts agree? */
import { APP, CAST, ORDERED } from "./cast.ts"
import type { Receipt } from "./engine.ts"
import type { DemoReceiver } from "./receiver.ts"
import type { Books, Show } from "./show.ts"

export interface Facts {
  /** What the sender was told is on disk. */
  readonly receipts: readonly Receipt[]
  /** The dead letters before the replay, and how many of them it sent again. */
  readonly dead: Books["deliveries"]
  readonly replayed: number
}

export interface Audit {
  readonly summary: readonly { readonly name: string; readonly text: string }[]
  /** What does not add up; empty when the books balance. */
  readonly problems: readonly string[]
}

export function audit(show: Show, receiver: DemoReceiver, facts: Facts): Audit {
  const { deliveries, attempts, counts } = show.books
  const accepted = facts.receipts.filter(({ duplicate }) => !duplicate)
  const repeatedSends = facts.receipts.length - accepted.length
  const promised = accepted.reduce((sum, { matched }) => sum + matched, 0)
  const attemptsOf = (status: string) => attempts.filter((attempt) => attempt.status === status).length
  const unknown = attemptsOf("unknown")
  const requests = receiver.total((tally) => tally.requests)
  const repeats = receiver.total((tally) => tally.repeats)
  const forged = receiver.total((tally) => tally.forged)
  const taken = takenPairs(receiver)
  const order = [...receiver.tally(ORDERED).taken.values()]

  const problems: string[] = []
  const check = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem)
  }
  const stored = new Set(deliveries.map(({ messageId }) => messageId))
  check(accepted.every(({ id }) => stored.has(id)), "an accepted message is not in the store")
  check(deliveries.length === promised, `${promised} deliveries were promised, the store has ${deliveries.length}`)
  check(counts.pending + counts.failed === 0, `${counts.pending + counts.failed} deliveries still wait`)
  check(facts.replayed === facts.dead.length, `${facts.dead.length} were dead, ${facts.replayed} were replayed`)
  check(counts.dead === 0, `${counts.dead} are dead after the replay`)
  check(counts.delivered === promised, `${counts.delivered} of ${promised} are delivered`)
  for (const pair of deliveredPairs(show)) check(taken.has(pair), `${pair} is delivered, its receiver has not taken it`)
  check(taken.size === promised, `the receivers took ${taken.size} events, not ${promised}`)
  const answered = attempts.filter(({ responseStatus }) => responseStatus !== null).length
  check(
    answered <= requests && requests <= attempts.length,
    `the receivers saw ${requests} requests, the log has ${attempts.length} attempts of which ${answered} were answered`,
  )
  check(forged === 0, `${forged} requests had a wrong signature`)
  check(order.every((n, i) => n === i + 1), `${ORDERED} is ordered and took ${numbers(order)}`)

  const reasons = Object.entries(Object.groupBy(facts.dead, ({ deadReason }) => String(deadReason)))
  const given = reasons.map(([reason, rows]) => `${rows!.length} ${reason}`).join(", ")
  const summary = [
    { name: "accepted", text: `${count(accepted.length, "message")} for ${promised} deliveries; ${count(repeatedSends, "repeated send")} known by its key` },
    { name: "delivered", text: `${counts.delivered}: ${counts.delivered - facts.replayed} at the first or a later try, ${facts.replayed} after the replay` },
    { name: "dead", text: `${counts.dead} left; ${facts.dead.length} were (${given}), ${facts.replayed} replayed` },
    { name: "attempts", text: `${attempts.length}: ${attemptsOf("succeeded")} succeeded, ${attemptsOf("failed")} failed, ${unknown} cut off by kill -9` },
    { name: "receiver", text: `${requests} requests, ${taken.size} events taken, ${count(repeats, "duplicate")} known by webhook-id` },
    { name: "order", text: `${ORDERED} took ${numbers(order)}, although #1 failed twice` },
  ]
  return { summary, problems }
}

/** "uid message-id" of everything that a receiver has taken. */
function takenPairs(receiver: DemoReceiver): Set<string> {
  return new Set(CAST.flatMap(({ uid }) => [...receiver.tally(uid).taken.keys()].map((id) => `${uid} ${id}`)))
}

function deliveredPairs({ books, uids }: Show): string[] {
  const delivered = books.deliveries.filter(({ status }) => status === "delivered")
  return delivered.map(({ endpointId, messageId }) => `${uids.get(endpointId) ?? APP} ${messageId}`)
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`
}

function numbers(order: readonly number[]): string {
  return order.map((n) => `#${n}`).join(" ")
}
