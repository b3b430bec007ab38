/** What must hold of the file, the receiver's ledger and the accepted ids, however often and whenever the program was killed. */
import assert from "node:assert/strict"
import { DatabaseSync } from "node:sqlite"
import type { AcceptedMessage } from "./campaign.ts"
import { type Entry, ORDERED, PLAIN } from "./ledger.ts"

type Row = { readonly [column: string]: never }

export interface Summary {
  readonly accepted: number
  readonly delivered: number
  readonly dead: number
  readonly requests: number
  /** Attempts whose outcome a crash left unknown. */
  readonly unknown: number
  /** Requests beyond the first for a message that had been answered with 200 before. */
  readonly repeats: number
}

/** Of every file that a crash leaves behind. */
export function checkFile(file: string, accepted: ReadonlyMap<string, AcceptedMessage>): void {
  const db = new DatabaseSync(file)
  try {
    const all = (sql: string) => db.prepare(sql).all() as Row[]
    assert.deepEqual(
      all("PRAGMA integrity_check").map(({ integrity_check }) => integrity_check),
      ["ok"],
      "the file is damaged",
    )
    // Killed before the first table was there: then nothing can have been accepted.
    const hasTables = all("SELECT 1 FROM sqlite_schema WHERE name = 'messages'").length > 0
    const messages = hasTables ? all("SELECT * FROM messages ORDER BY seq") : []
    checkAccepted(messages, accepted)
    if (!hasTables) return
    assert.deepEqual(
      all(`
        SELECT m.id FROM messages m
         WHERE matched <> ${PLAIN.length + ORDERED.length}
            OR matched <> (SELECT count(*) FROM webhook_deliveries d WHERE d.message_id = m.id)`),
      [],
      "messages without all of their deliveries",
    )
    assert.deepEqual(
      all("SELECT id FROM webhook_deliveries WHERE message_id NOT IN (SELECT id FROM messages)"),
      [],
      "deliveries without their message",
    )
  } finally {
    db.close()
  }
}

function checkAccepted(messages: readonly Row[], accepted: ReadonlyMap<string, AcceptedMessage>): void {
  const bySender = new Map<number, number>()
  const byId = new Set<string>()
  for (const { id, payload } of messages) {
    const { sender, n } = JSON.parse(Buffer.from(payload as Uint8Array).toString()) as AcceptedMessage
    byId.add(id)
    // A repeat under the same idempotency key would be a number twice, a send lost behind a later one a gap.
    assert.equal(n, bySender.get(sender) ?? 0, `sender ${sender}'s messages are not once each and in order`)
    bySender.set(sender, n + 1)
    const known = accepted.get(id)
    if (known !== undefined) assert.deepEqual({ sender, n }, known, `message ${id} is not what was accepted as ${id}`)
  }
  const missing = [...accepted.keys()].filter((id) => !byId.has(id))
  assert.deepEqual(missing, [], "accepted messages are missing from the file")
}

/** Of the file and the ledger after everything that waited has been worked off. */
export function checkOutcome(
  file: string,
  accepted: ReadonlyMap<string, AcceptedMessage>,
  entries: readonly Entry[],
): Summary {
  const db = new DatabaseSync(file)
  try {
    const all = (sql: string) => db.prepare(sql).all() as Row[]
    const deliveries = all(`
      SELECT d.*, e.uid AS endpoint FROM webhook_deliveries d JOIN endpoints e ON e.id = d.webhook_id ORDER BY d.seq`)
    const attempts = all("SELECT * FROM attempts ORDER BY seq")
    const requests = Map.groupBy(entries.entries(), ([, { endpoint, id }]) => key(endpoint, id))
    const log = Map.groupBy(attempts, ({ delivery_id }) => delivery_id as string)
    for (const delivery of deliveries) {
      const name = key(delivery.endpoint, delivery.message_id)
      checkDelivery(delivery, log.get(delivery.id) ?? [], new Map(requests.get(name)))
      requests.delete(name)
    }
    assert.deepEqual([...requests.keys()], [], "requests for messages that are not in the file")
    assert.deepEqual(all("SELECT * FROM in_flight"), [], "deliveries still marked as being sent")
    checkBodies(all("SELECT id, payload FROM messages"), entries)
    for (const endpoint of ORDERED) checkOrder(endpoint, deliveries, entries)
    return {
      accepted: accepted.size,
      delivered: deliveries.filter(({ status }) => status === "delivered").length,
      dead: deliveries.filter(({ status }) => status === "dead").length,
      requests: entries.length,
      unknown: attempts.filter(({ status }) => status === "unknown").length,
      repeats: countRepeats(entries),
    }
  } finally {
    db.close()
  }
}

/** Finished, as the ledger says; every attempt that names an answer is that request, and no request is left over without a reason. */
function checkDelivery(delivery: Row, attempts: readonly Row[], requests: Map<number, Entry>): void {
  const where = `delivery ${delivery.id} of ${delivery.message_id} to ${delivery.endpoint}`
  const unnamed = new Map(requests)
  let unanswered = 0
  let known = 0
  for (const attempt of attempts) {
    if (attempt.status !== "unknown") known++
    if (attempt.response_body === null) {
      unanswered++
      continue
    }
    const number = Number(Buffer.from(attempt.response_body as Uint8Array).toString())
    assert.ok(unnamed.delete(number), `${where}: attempt ${attempt.id} names request ${number}, not one of its own`)
    assert.equal(attempt.response_status, requests.get(number)!.status, `${where}: request ${number}'s status`)
    assert.equal(attempt.status === "succeeded", attempt.response_status === 200, `${where}: attempt ${attempt.id}`)
  }
  assert.ok(unnamed.size <= unanswered, `${where}: requests ${[...unnamed.keys()]} are not in the attempt log`)
  assert.equal(delivery.attempt_count, known, `${where}: its attempt count`)
  const succeeded = attempts.filter(({ status }) => status === "succeeded").length
  assert.equal(succeeded, delivery.status === "delivered" ? 1 : 0, `${where}: ${delivery.status} with ${succeeded} successes`)
  if (delivery.status === "delivered") return
  assert.equal(delivery.status, "dead", `${where}: neither delivered nor dead`)
  assert.ok(delivery.dead_reason === "exhausted" || delivery.dead_reason === "error", `${where}: ${delivery.dead_reason}`)
  if (delivery.dead_reason === "exhausted") assert.equal(known, 5, `${where}: given up after ${known} attempts`)
}

function checkBodies(messages: readonly Row[], entries: readonly Entry[]): void {
  const payloads = new Map(messages.map(({ id, payload }) => [id as string, payload as Uint8Array]))
  for (const { id, body } of entries)
    assert.equal(Buffer.compare(body, payloads.get(id)!), 0, `a request for ${id} has another body`)
}

/** Nothing is sent before all that was accepted before it is finished: the numbers never go back, not even for a repeat. */
function checkOrder(endpoint: string, deliveries: readonly Row[], entries: readonly Entry[]): void {
  const numbers = new Map(
    deliveries
      .filter((delivery) => delivery.endpoint === endpoint)
      .map(({ message_id, seq }) => [message_id as string, seq as number]),
  )
  let last = 0
  for (const entry of entries) {
    if (entry.endpoint !== endpoint) continue
    const number = numbers.get(entry.id)!
    assert.ok(number >= last, `${endpoint} got message ${entry.id} (number ${number}) after number ${last}`)
    last = number
  }
}

function countRepeats(entries: readonly Entry[]): number {
  const taken = new Set<string>()
  let repeats = 0
  for (const { endpoint, id, status } of entries) {
    if (taken.has(key(endpoint, id))) repeats++
    if (status === 200) taken.add(key(endpoint, id))
  }
  return repeats
}

function key(endpoint: string, messageId: string): string {
  return `${endpoint} ${messageId}`
}
