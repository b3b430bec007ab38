/** Accepting messages, many calls in one statement. */
import { BoundedCache } from "../../core/bounded-cache.ts"
import { notFound, PosthornError } from "../../core/errors.ts"
import { firstDelivery } from "../first-delivery.ts"
import { eventIdTaken, idempotencyKeyTaken, priorityRefused } from "../refusals.ts"
import type { Row } from "../rows.ts"
import type { Accepted, NewMessage } from "../store.ts"
import {
  ACCEPT,
  ACCEPT_IN_TRANSACTION,
  type AcceptResult,
  acceptValues,
  generationOf,
  NO_OFFERS,
  type Offers,
} from "./accept.ts"
import { Batcher } from "./batcher.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { isConnectionTrouble, isMissingPartition, toPosthornError } from "./errors.ts"
import type { LaneSessions } from "./lane-sessions.ts"
import type { Statement } from "./statement.ts"
import { Wakes } from "./wakes.ts"

/** Limits of one statement. */
const MOST_BYTES = 4 * 1024 * 1024
const MOST_MESSAGES = 500
const MOST_DELIVERIES = 5000
/** Assumed number of endpoints for the first message of a kind. */
const UNKNOWN_FAN_OUT = 250
/** Bound of the lanes kept in memory, over all kinds of messages. */
const MOST_REMEMBERED = 100_000

/** Tries of a call whose key another open transaction has written. */
const TRIES = 3

/**
 * An application's calls keep their order: it has at most one statement in flight. One statement at a time is enough for throughput (12 100
 * sends a second against 12 600 with four); the second keeps an application that waits for a lock from delaying the others.
 */
const BATCHES = { atOnce: 2, most: 1, group: application }

type Result = Accepted | PosthornError

interface Handed {
  readonly seqs: readonly number[]
  readonly ids: readonly string[]
  readonly to: readonly string[]
}

/** A `pg` client in the user's own transaction. */
interface Client {
  query(query: { text: string; values: unknown[] }): Promise<{ rows: Row[] }>
}

export class Acceptor {
  readonly #context: Context
  readonly #sessions: LaneSessions
  readonly #accepting: BoundedCache<string, true>
  readonly #wakes: Wakes
  readonly #batcher: Batcher<NewMessage, Result>
  /** Lanes of the last message of each kind, which are offered to the next. */
  readonly #lanes = new BoundedCache<string, readonly string[]>(MOST_REMEMBERED)

  constructor(context: Context, sessions: LaneSessions, accepting: BoundedCache<string, true>) {
    this.#context = context
    this.#sessions = sessions
    this.#accepting = accepting
    this.#wakes = new Wakes(context.database, sessions)
    this.#batcher = new Batcher(
      (messages) => this.#acceptEach(messages),
      BATCHES,
      (message) => this.#weight(message),
    )
  }

  /** Share of a statement's limits: a thousand endpoints for each of 400 messages would exceed every timeout. */
  #weight(message: NewMessage): number {
    const fanOut = message.to === null ? (this.#lanes.get(kindOf(message))?.length ?? UNKNOWN_FAN_OUT) : 1
    return Math.max(message.payload.length / MOST_BYTES, 1 / MOST_MESSAGES, fanOut / MOST_DELIVERIES)
  }

  async accept(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]> {
    if (tx !== undefined) return this.#inTransactionOf(tx, messages)
    if (messages.length !== 1) return this.#together(messages)
    const result = await this.#batcher.add(messages[0]!)
    if (result instanceof PosthornError) throw result
    return [result]
  }

  close(): Promise<void> {
    return this.#wakes.close()
  }

  /** A refused message does not affect the others. */
  async #acceptEach(messages: readonly NewMessage[], offers = this.#offers(messages)): Promise<Result[]> {
    let rows: readonly Row[] | null
    try {
      rows = await this.#tryWith(messages, offers)
      if (rows !== null) this.#handOver(messages, rows, offers)
    } finally {
      for (const { session } of offers.lanes) session.endOffer()
    }
    if (rows === null) return this.#oneByOne(messages)
    const results = rows.map((row, i) => toResult(row, messages[i]!))
    for (const [i, message] of messages.entries()) this.#learn(message, rows[i]!)
    const undecided = messages.filter((_, i) => results[i] === null)
    const decided = undecided.length === 0 ? [] : await this.#acceptEach(undecided)
    return results.map((result) => result ?? decided.shift()!)
  }

  /** Null when a lock or one message may have caused the failure: each message is then tried alone, without offers. */
  async #tryWith(messages: readonly NewMessage[], offers: Offers): Promise<Row[] | null> {
    try {
      return await this.#run(messages, offers)
    } catch (error) {
      const isUnsure = isConnectionTrouble(error instanceof PosthornError ? error.cause : error)
      // The statement may have committed, with marks of deliveries that no session has received.
      if (isUnsure) this.#wakes.add(offers.lanes.map(({ session }) => session.claim.endpointId))
      if (isUnsure || (messages.length === 1 && offers.lanes.length === 0)) throw error
      return null
    }
  }

  async #oneByOne(messages: readonly NewMessage[]): Promise<Result[]> {
    const results: Result[] = []
    for (const message of messages)
      results.push(
        ...(await this.#acceptEach([message], NO_OFFERS).catch((alone) => [toPosthornError(alone)])),
      )
    return results
  }

  /** Open lanes that probably get these messages. A wrong guess costs a fetch. */
  #offers(messages: readonly NewMessage[]): Offers {
    const { owner } = this.#sessions
    if (owner === 0) return NO_OFFERS
    const lanes = new Set<string>()
    for (const message of messages) {
      if (message.deliverAt !== null) continue
      if (message.to !== null) lanes.add(message.to)
      else for (const lane of this.#lanes.get(kindOf(message)) ?? []) lanes.add(lane)
    }
    const offers = [...lanes].map((lane) => this.#sessions.offer(lane))
    return { owner, lanes: offers.filter((offer) => offer !== null) }
  }

  /** Hands claimed deliveries to their sessions, and removes their lanes from those to wake. */
  #handOver(messages: readonly NewMessage[], rows: readonly Row[], { lanes }: Offers): void {
    if (lanes.length === 0) return
    const offered = new Map(lanes.map(({ session }) => [session.claim.endpointId, session]))
    const byId = new Map(messages.map((message, i) => [message.id, { message, row: rows[i]! }]))
    const first = rows[0]!
    const handed = { seqs: first.handed_seq, ids: first.handed_id, to: first.handed_webhook_id } as Handed
    const handedLanes = new Map<Row, Set<string>>()
    for (const [i, messageId] of (first.handed_message_id as string[]).entries()) {
      const { message, row } = byId.get(messageId)!
      const endpointId = handed.to[i]!
      const known = handedLanes.get(row)
      if (known === undefined) handedLanes.set(row, new Set([endpointId]))
      else known.add(endpointId)
      const delivery = firstDelivery(message, handed.seqs[i]!, handed.ids[i]!)
      offered.get(endpointId)!.receive(delivery)
    }
    for (const row of rows) {
      const isHanded = handedLanes.get(row)
      row.wakes = ((row.lanes ?? []) as string[]).filter((lane) => !isHanded?.has(lane))
      // A delivery waits in the store: later ones must not overtake it.
      for (const lane of row.wakes as string[]) offered.get(lane)?.shut()
    }
  }

  #learn(message: NewMessage, { app_id, lanes }: Row): void {
    if (app_id === null) return
    this.#accepting.set(app_id as string, true)
    if (message.to !== null || lanes === null) return
    this.#lanes.set(kindOf(message), lanes as string[], (lanes as string[]).length + 1)
  }

  async #run(messages: readonly NewMessage[], offers: Offers): Promise<Row[]> {
    const { database, partitions } = this.#context
    for (let left = TRIES; ; left--) {
      await partitions.ensureGeneration(generationOf(messages))
      try {
        return await database.run(ACCEPT, acceptValues(messages, offers))
      } catch (error) {
        if (left === 1 || !isMissingPartition((error as Error).cause)) throw error
        partitions.forget()
      }
    }
  }

  /** All or none. */
  async #together(messages: readonly NewMessage[]): Promise<Accepted[]> {
    const { database, partitions } = this.#context
    await partitions.ensureGeneration(generationOf(messages))
    return database.transaction((runner) => allOrThrow(runner, messages))
  }

  async #inTransactionOf(tx: unknown, messages: readonly NewMessage[]): Promise<Accepted[]> {
    if (typeof (tx as Partial<Client> | null)?.query !== "function")
      throw new PosthornError("invalid_input", "tx must be a client of the package pg, in a transaction", {
        field: "tx",
      })
    await this.#context.partitions.ensureGeneration(generationOf(messages))
    const client = tx as Client
    const { schema } = this.#context.database
    const run = async (statement: Statement, values: readonly unknown[]) =>
      (await client.query({ text: schema.bind(statement).text, values: [...values] })).rows
    try {
      await client.query({ text: "SAVEPOINT posthorn_send", values: [] })
    } catch (error) {
      throw toOutboxError(error)
    }
    try {
      const accepted = await allOrThrow({ run }, messages, ACCEPT_IN_TRANSACTION)
      await client.query({ text: "RELEASE SAVEPOINT posthorn_send", values: [] })
      return accepted
    } catch (error) {
      // The user's transaction can continue without the messages.
      await client.query({ text: "ROLLBACK TO SAVEPOINT posthorn_send", values: [] }).catch(() => {})
      throw toPosthornError(error)
    }
  }
}

/** Two tenants may use the same uid. */
function application({ orgId, app }: NewMessage): string {
  return `${orgId} ${app}`
}

function kindOf(message: NewMessage): string {
  return `${application(message)} ${message.eventType}`
}

const NO_TRANSACTION = "25P01"

/** A pool, or a client outside of a transaction, would commit the message before the user's work. */
function toOutboxError(error: unknown): PosthornError {
  if ((error as { code?: unknown }).code !== NO_TRANSACTION) return toPosthornError(error)
  const text = "tx must be in a transaction: give the client that BEGIN was sent on, not a pool"
  return new PosthornError("invalid_input", text, { field: "tx", cause: error })
}

async function allOrThrow(
  runner: Runner,
  messages: readonly NewMessage[],
  statement = ACCEPT,
): Promise<Accepted[]> {
  const results: (Accepted | null)[] = messages.map(() => null)
  for (let left = TRIES; ; left--) {
    const asked = messages.filter((_, i) => results[i] === null)
    if (asked.length === 0) return results as Accepted[]
    // A second message with the same eventId in one call stays undecided.
    if (left === 0) throw refusal("event_id_conflict", asked[0]!)
    const rows = await runner.run(statement, acceptValues(asked))
    for (const [i, message] of asked.entries()) {
      const result = toResult(rows[i]!, message)
      if (result instanceof PosthornError) throw result
      results[messages.indexOf(message)] = result
    }
  }
}

/** Null: not decided yet. */
function toResult(row: Row, message: NewMessage): Result | null {
  const result = row.result as AcceptResult
  switch (result) {
    case "again":
      return null
    case "new": {
      const dueAt = message.wakeAt
      const matched = ((row.lanes as string[] | null) ?? []).length
      const wakes = (row.wakes ?? row.lanes ?? []) as string[]
      const appId = row.app_id as string
      const lanes = wakes.map((endpointId) => ({ endpointId, appId, dueAt }))
      const { id, receivedAt, deliverAt } = message
      return { messageId: id, appId, receivedAt, deliverAt, matched, duplicate: false, lanes }
    }
    case "duplicate":
      return {
        messageId: row.used_by as string,
        appId: row.app_id as string,
        receivedAt: Number(row.prior_received_at ?? message.receivedAt),
        deliverAt: (row.prior_deliver_at as number | null) ?? message.deliverAt,
        matched: Number(row.prior_matched ?? 0),
        duplicate: true,
        lanes: [],
      }
    default:
      return refusal(result, message, row.ordered_endpoint as string | null)
  }
}

function refusal(
  result: Exclude<AcceptResult, "new" | "again" | "duplicate">,
  message: NewMessage,
  orderedEndpoint: string | null = null,
): PosthornError {
  switch (result) {
    case "no_application":
      return notFound("application", message.app)
    case "key_conflict":
      return idempotencyKeyTaken()
    case "event_id_conflict":
      return eventIdTaken(message.eventId)
    case "priority_refused":
      return priorityRefused(orderedEndpoint)
    default:
      return result satisfies never
  }
}
