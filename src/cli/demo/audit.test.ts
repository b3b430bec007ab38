/** The audit finds every kind of discrepancy. */
import { expect, onTestFinished, test } from "vitest"
import type { Attempt, Delivery } from "../../index.ts"
import { type AuditFacts, audit } from "./audit.ts"
import { ENDPOINTS, ORDERED } from "./endpoints.ts"
import { DemoReceiver } from "./receiver.ts"
import { DemoState } from "./state.ts"
import { auditLines } from "./view.ts"

/** Two messages that every endpoint got at the first try; one delivery of them was dead and replayed. */
async function balanced() {
  const receiver = await DemoReceiver.start()
  onTestFinished(() => receiver.close())
  const state = new DemoState("posthorn.db")
  const deliveries: Partial<Delivery>[] = []
  const attempts: Partial<Attempt>[] = []
  for (const { uid } of ENDPOINTS) {
    receiver.expect(uid, "whsec_")
    state.uids.set(`ep_${uid}`, uid)
    for (const n of [1, 2]) {
      deliveries.push({ endpointId: `ep_${uid}`, messageId: `msg_${n}`, status: "delivered" })
      attempts.push({ endpointId: `ep_${uid}`, status: "succeeded", responseStatus: 200 })
      receiver.tally(uid).taken.set(`msg_${n}`, n)
      receiver.tally(uid).requests++
    }
  }
  const counts = { pending: 0, failed: 0, delivered: deliveries.length, dead: 0, calledOff: 0 }
  state.snapshot = { deliveries: deliveries as Delivery[], attempts: attempts as Attempt[], counts }
  const facts: AuditFacts = {
    receipts: [1, 2].map((n) => ({ id: `msg_${n}`, matched: ENDPOINTS.length, duplicate: false })),
    dead: [{ deadReason: "gone" } as Delivery],
    replayed: 1,
  }
  return { state, receiver, facts }
}

type Books = Awaited<ReturnType<typeof balanced>>

test("books that agree have no problem", async () => {
  const { state, receiver, facts } = await balanced()
  const result = audit(state, receiver, facts)
  expect(result.problems).toEqual([])
  expect(auditLines(result).at(-1)).toContain("The books balance")
})

const CASES: [name: string, problem: RegExp, spoil: (books: Books) => Partial<Books>][] = [
  [
    "an accepted message that the store does not know",
    /an accepted message is not in the store/,
    ({ facts }) => ({
      facts: { ...facts, receipts: [...facts.receipts, { id: "msg_lost", matched: 0, duplicate: false }] },
    }),
  ],
  [
    "a delivery that was promised and never written",
    /18 deliveries promised, 17 in the store/,
    ({ state }) => {
      state.snapshot = { ...state.snapshot, deliveries: state.snapshot.deliveries.slice(1) }
      return {}
    },
  ],
  [
    "a delivery that is still open",
    /1 deliveries are still open/,
    ({ state }) => {
      state.snapshot = { ...state.snapshot, counts: { ...state.snapshot.counts, failed: 1 } }
      return {}
    },
  ],
  [
    "a dead letter that was not replayed",
    /1 were dead, 0 were replayed/,
    ({ facts }) => ({ facts: { ...facts, replayed: 0 } }),
  ],
  [
    "a delivery that no receiver has",
    /delivered, but not at the receiver: steady msg_2/,
    ({ receiver }) => {
      receiver.tally("steady").taken.delete("msg_2")
      return {}
    },
  ],
  [
    "an event that a receiver took and nobody sent",
    /the receivers took 19 events, not 18/,
    ({ receiver }) => {
      receiver.tally("steady").taken.set("msg_9", 9)
      return {}
    },
  ],
  [
    "a request that is in no log",
    /19 requests seen, 18 attempts logged/,
    ({ receiver }) => {
      receiver.tally("flaky").requests++
      return {}
    },
  ],
  [
    "a request that was not signed",
    /1 requests had a wrong signature/,
    ({ receiver }) => {
      receiver.tally("flaky").forged++
      return {}
    },
  ],
  [
    "an order that was not kept",
    /ledger is ordered and took #2 #1/,
    ({ receiver }) => {
      const { taken } = receiver.tally(ORDERED)
      taken.delete("msg_1")
      taken.set("msg_1", 1)
      return {}
    },
  ],
]

test.each(CASES)("%s is a problem", async (_name, problem, spoil) => {
  const books = await balanced()
  const { state, receiver, facts } = { ...books, ...spoil(books) }
  const result = audit(state, receiver, facts)
  expect(result.problems.join("\n")).toMatch(problem)
  expect(auditLines(result).at(-1)).toMatch(/The books do not balance/)
})
