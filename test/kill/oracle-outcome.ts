/** Invariants of the store and of the receiver's ledger after the last delivery is finished. */
import assert from "node:assert/strict"
import type { Ground } from "../support/ground.ts"
import { type Entry, ORDERED } from "./ledger.ts"
import type { AttemptRow, DeliveryRow, MessageRow } from "./rows.ts"

const MOST_ATTEMPTS = 5

export interface Summary {
  readonly messages: number
  readonly delivered: number
  /** Given up, by reason. */
  readonly dead: { readonly [reason: string]: number }
  readonly requests: number
  /** Attempts whose outcome a crash left unknown. */
  readonly unknown: number
  /** Requests for what had been answered with 200 before. */
  readonly repeats: number
}

export async function checkOutcome(ground: Ground, entries: readonly Entry[]): Promise<Summary> {
  const read = async <Row>(sql: string) => (await ground.sql(sql)) as Row[]
  const messages = await read<MessageRow>("SELECT id, payload FROM messages")
  const deliveries = await read<DeliveryRow>(`
    SELECT d.*, e.uid AS endpoint FROM webhook_deliveries d JOIN endpoints e ON e.id = d.webhook_id ORDER BY d.seq`)
  const attempts = await read<AttemptRow>("SELECT * FROM attempts ORDER BY seq")
  checkDeliveries(deliveries, attempts, entries)
  checkBodies(messages, entries)
  for (const endpoint of ORDERED) checkOrder(endpoint, deliveries, entries)
  assert.deepEqual(await ground.inHand(), [], "deliveries still marked as being sent")
  const dead = Map.groupBy(deliveries, ({ dead_reason }) => dead_reason ?? "")
  dead.delete("")
  return {
    messages: messages.length,
    delivered: deliveries.filter(({ status }) => status === "delivered").length,
    dead: Object.fromEntries([...dead].map(([reason, { length }]) => [reason, length])),
    requests: entries.length,
    unknown: attempts.filter(({ status }) => status === "unknown").length,
    repeats: countRepeats(entries),
  }
}

function checkDeliveries(
  deliveries: readonly DeliveryRow[],
  attempts: readonly AttemptRow[],
  entries: readonly Entry[],
): void {
  const requests = Map.groupBy(entries.entries(), ([, { endpoint, id }]) => key(endpoint, id))
  const log = Map.groupBy(attempts, ({ delivery_id }) => delivery_id)
  for (const delivery of deliveries) {
    const name = key(delivery.endpoint, delivery.message_id)
    const own = new Map(requests.get(name))
    requests.delete(name)
    checkEnd(delivery, log.get(delivery.id) ?? [])
    checkLog(delivery, log.get(delivery.id) ?? [], own)
  }
  assert.deepEqual([...requests.keys()], [], "requests for messages that are not in the store")
}

/** Delivered once, or dead for a reason that its attempts bear out. */
function checkEnd(delivery: DeliveryRow, attempts: readonly AttemptRow[]): void {
  const count = (wanted: string) => attempts.filter(({ status }) => status === wanted).length
  const succeeded = count("succeeded")
  const finished = succeeded + count("failed")
  assert.ok(delivery.status === "delivered" || delivery.status === "dead", say(delivery, delivery.status))
  assert.equal(succeeded, Number(delivery.status === "delivered"), say(delivery, "successes in its log"))
  assert.equal(delivery.attempt_count, finished, say(delivery, "attempt_count"))
  if (delivery.dead_reason === "exhausted")
    assert.equal(finished, MOST_ATTEMPTS, say(delivery, "given up too early or too late"))
}

/** An attempt with an answer is the request that got it; a request that no attempt names was cut off by a crash or a time-out. */
function checkLog(
  delivery: DeliveryRow,
  attempts: readonly AttemptRow[],
  requests: ReadonlyMap<number, Entry>,
): void {
  const unnamed = new Map(requests)
  for (const { id, status, response_status, response_body } of attempts) {
    if (response_body === null) continue
    const number = Number(Buffer.from(response_body).toString())
    assert.ok(
      unnamed.delete(number),
      say(delivery, `attempt ${id} names request ${number}, not one of its own`),
    )
    assert.equal(response_status, requests.get(number)!.status, say(delivery, `status of request ${number}`))
    assert.equal(status, response_status === 200 ? "succeeded" : "failed", say(delivery, `attempt ${id}`))
  }
  const unanswered = attempts.filter(({ response_body }) => response_body === null).length
  assert.ok(unnamed.size <= unanswered, say(delivery, `requests ${[...unnamed.keys()]} are not in its log`))
}

function checkBodies(messages: readonly MessageRow[], entries: readonly Entry[]): void {
  const payloads = new Map(messages.map(({ id, payload }) => [id, payload]))
  for (const { id, body } of entries)
    assert.equal(Buffer.compare(body, payloads.get(id)!), 0, `a request for ${id} had another body`)
}

/** Nothing is sent before all that was accepted before it is finished: the numbers never go back, not even for a repeat. */
function checkOrder(endpoint: string, deliveries: readonly DeliveryRow[], entries: readonly Entry[]): void {
  const own = deliveries.filter((delivery) => delivery.endpoint === endpoint)
  const numbers = new Map(own.map(({ message_id, seq }) => [message_id, seq]))
  let last = 0
  for (const { id } of entries.filter((entry) => entry.endpoint === endpoint)) {
    const number = numbers.get(id)!
    assert.ok(number >= last, `${endpoint} got message ${id} (number ${number}) after number ${last}`)
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

function say({ id, message_id, endpoint }: DeliveryRow, problem: string): string {
  return `delivery ${id} of ${message_id} to ${endpoint}: ${problem}`
}
