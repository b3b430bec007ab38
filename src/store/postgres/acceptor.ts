/** Accepting messages, many calls in one statement. */
import { notFound, PosthornError } from "../../core/errors.ts"
import type { Row } from "../rows.ts"
import type { Accepted, NewMessage } from "../store.ts"
import { ACCEPT, ACCEPT_IN_TRANSACTION, acceptValues, generationOf, type Verdict } from "./accept.ts"
import { ACCEPT_KNOWN, acceptKnownValues, applicationsOf, type Planned } from "./accept-known.ts"
import { Batcher } from "./batcher.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { isConnectionTrouble, isMissingPartition, toPosthornError } from "./errors.ts"
import type { Statement } from "./statement.ts"
import { Wakes } from "./wakes.ts"

/** The most that one statement carries. */
const MOST_BYTES = 4 * 1024 * 1024
const MOST_MESSAGES = 500
const MOST_DELIVERIES = 5000
/** How many endpoints a message is taken to have before its application's first one was accepted. */
const UNKNOWN_FAN_OUT = 250
const MOST_REMEMBERED = 10_000

/** A key that somebody else holds in an open transaction keeps a call waiting for so long and no longer. */
const TRIES = 3

/** One at a time keeps the order of the calls, and is enough: 12 100 sends a second against 12 600 with four. */
const ONE_BY_ONE = { atOnce: 1, most: 1 }

type Result = Accepted | PosthornError

/** A `pg` client in the user's own transaction. */
interface Client {
  query(query: { text: string; values: unknown[] }): Promise<{ rows: Row[] }>
}

export class Acceptor {
  readonly #context: Context
  readonly #unsure: Wakes
  readonly #single: Batcher<NewMessage, Result>
  /** For messages whose endpoints are known. Apart from the others: one of those may have to wait for somebody. */
  readonly #known: Batcher<NewMessage, Result | null>
  /** How many of an application's messages are with the others. */
  readonly #unknown = new Map<string, number>()
  /** How many endpoints an application's last message to all had. */
  readonly #fanOut = new Map<string, number>()

  constructor(context: Context) {
    this.#context = context
    this.#unsure = new Wakes(context.database, context.hands)
    this.#single = new Batcher(
      (messages) => this.#acceptAny(messages),
      ONE_BY_ONE,
      (message) => this.#weight(message),
    )
    this.#known = new Batcher(
      (messages) => this.#acceptKnown(messages),
      ONE_BY_ONE,
      (message) => this.#weight(message),
    )
  }

  /** The part of a statement that a message fills: a thousand endpoints for each of 400 messages would outlast every deadline. */
  #weight(message: NewMessage): number {
    const fanOut = message.to === null ? (this.#fanOut.get(addressee(message)) ?? UNKNOWN_FAN_OUT) : 1
    return Math.max(message.payload.length / MOST_BYTES, 1 / MOST_MESSAGES, fanOut / MOST_DELIVERIES)
  }

  async accept(messages: readonly NewMessage[], tx?: unknown): Promise<Accepted[]> {
    if (tx !== undefined) return this.#inTransactionOf(tx, messages)
    if (messages.length !== 1) return this.#together(messages)
    const [message] = messages as [NewMessage]
    // Whoever waits for this must not call again in the same moment: a message behind it that waits for `ended` would be overtaken.
    const result = this.#isKnown(message)
      ? ((await this.#known.add(message)) ?? (await this.#addUnknown(message)))
      : await this.#addUnknown(message, this.#known.ended())
    if (result instanceof PosthornError) throw result
    return [result]
  }

  #isKnown(message: NewMessage): boolean {
    if (message.idempotency !== null || message.eventId !== null || message.to !== null) return false
    return this.#context.routes.of(message) !== null && !this.#unknown.has(addressee(message))
  }

  /** Calls keep their order: it waits for those before it, and those behind it that are for the same application go its way. */
  async #addUnknown(message: NewMessage, before: Promise<unknown> | null = null): Promise<Result> {
    const to = addressee(message)
    this.#unknown.set(to, (this.#unknown.get(to) ?? 0) + 1)
    try {
      if (before !== null) await before
      return await this.#single.add(message)
    } finally {
      const left = this.#unknown.get(to)! - 1
      if (left === 0) this.#unknown.delete(to)
      else this.#unknown.set(to, left)
    }
  }

  close(): Promise<void> {
    return this.#unsure.close()
  }

  /** Null for what turns out to be for the others to accept: whoever asked gives it to them when this is over, in the order of the calls. */
  async #acceptKnown(messages: readonly NewMessage[]): Promise<(Result | null)[]> {
    const plans = messages.map((message) => this.#plan(message))
    const planned = plans.filter((plan) => plan !== null)
    const accepted = (planned.length > 0 && (await this.#write(planned))) || []
    return plans.map((plan) => (plan && accepted.shift()) ?? null)
  }

  /** Null for one that the database has to look at: its endpoints are no longer known, or it may be refused. */
  #plan(message: NewMessage): Planned | null {
    const routes = this.#context.routes.of(message)
    if (routes === null || this.#unknown.has(addressee(message))) return null
    const recipients = routes.recipients.of(message)
    if (message.priority !== "normal" && recipients.some(({ ordered }) => ordered)) return null
    const { hands, ids } = this.#context
    const deliveries = recipients.map((route) => ({
      id: ids.make("dlv", message.receivedAt),
      route,
      offer: message.deliverAt === null ? hands.offer(route, message.payload.length) : null,
    }))
    return { message, routes, deliveries }
  }

  /** Null when what is known is not true any more: then nothing was written. */
  async #write(planned: readonly Planned[]): Promise<Accepted[] | null> {
    const applications = applicationsOf(planned)
    let row: Row | undefined
    try {
      ;[row] = await this.#context.database.run(ACCEPT_KNOWN, acceptKnownValues(planned, applications))
    } catch (error) {
      // They may have been written, with a mark that nobody knows of.
      this.#unsure.add(this.#withdraw(planned))
      if (isConnectionTrouble(error instanceof PosthornError ? error.cause : error)) throw error
      return null
    }
    const outdated = row!.outdated as number[]
    if (outdated.length > 0) {
      this.#withdraw(planned)
      for (const ord of outdated) this.#forget(applications[ord - 1]!)
      return null
    }
    const alive = new Set(row!.alive as number[])
    let place = 0
    return planned.map((plan) => this.#accepted(plan, () => (row!.seqs as number[])[place++]!, alive))
  }

  #accepted(
    { message, routes, deliveries }: Planned,
    nextSeq: () => number,
    alive: ReadonlySet<number>,
  ): Accepted {
    const { hands } = this.#context
    const { appId } = routes.recipients
    const dueAt = message.wakeAt
    const lanes = deliveries.map(({ id, route, offer }) => {
      const lane = { endpointId: route.id, appId, dueAt }
      const seq = nextSeq()
      if (offer === null) return lane
      if (!alive.has(offer.owner)) {
        hands.withdraw(route.id, offer)
        return lane
      }
      hands.take(route.id, offer, seq)
      return { ...lane, handed: { seq, id, token: offer.token } }
    })
    this.#rememberFanOut(message, lanes.length)
    const { id: messageId, receivedAt, deliverAt } = message
    return { messageId, receivedAt, deliverAt, matched: lanes.length, duplicate: false, lanes }
  }

  #withdraw(planned: readonly Planned[]): string[] {
    const offered = planned.flatMap(({ deliveries }) => deliveries.filter(({ offer }) => offer !== null))
    for (const { route, offer } of offered) this.#context.hands.withdraw(route.id, offer!)
    return offered.map(({ route }) => route.id)
  }

  /** Whatever was changed, none of its lanes is taken to be as it was. */
  #forget({ message, routes }: Planned): void {
    this.#context.routes.forget(message)
    for (const { id } of routes.recipients.subscribers) this.#context.hands.close(id)
  }

  #rememberFanOut(message: NewMessage, matched: number): void {
    if (this.#fanOut.size > MOST_REMEMBERED) this.#fanOut.clear()
    if (message.to === null) this.#fanOut.set(addressee(message), matched)
  }

  /** Each for itself: one that is refused harms none of the others. */
  async #acceptAny(messages: readonly NewMessage[]): Promise<Result[]> {
    let rows: readonly Row[]
    try {
      rows = await this.#run(messages)
    } catch (error) {
      const cause = error instanceof PosthornError ? error.cause : error
      if (messages.length === 1 || isConnectionTrouble(cause)) throw error
      // Whatever one of them did wrong, the others did not.
      const results: Result[] = []
      for (const message of messages)
        results.push(...(await this.#acceptAny([message]).catch((alone) => [toPosthornError(alone)])))
      return results
    }
    const results = rows.map((row, i) => judge(row, messages[i]!))
    for (const [i, message] of messages.entries()) {
      const result = results[i]!
      if (result !== null && "matched" in result) this.#rememberFanOut(message, result.matched)
    }
    const undecided = messages.filter((_, i) => results[i] === null)
    const decided = undecided.length === 0 ? [] : await this.#acceptAny(undecided)
    return results.map((result) => result ?? decided.shift()!)
  }

  async #run(messages: readonly NewMessage[]): Promise<Row[]> {
    const { database, partitions } = this.#context
    for (let left = TRIES; ; left--) {
      await partitions.ensureGeneration(generationOf(messages))
      try {
        return await database.run(ACCEPT, acceptValues(messages))
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
      // All or none, and the user's transaction goes on as if nothing had been asked.
      await client.query({ text: "ROLLBACK TO SAVEPOINT posthorn_send", values: [] }).catch(() => {})
      throw toPosthornError(error)
    }
  }
}

/** Two tenants may call their applications the same. */
function addressee({ orgId, app }: NewMessage): string {
  return `${orgId} ${app}`
}

const NO_TRANSACTION = "25P01"

/** A pool, or a client outside of a transaction, would write the message at once, whatever becomes of the user's work. */
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
    // A second message with the same eventId in one call is never decided.
    if (left === 0) throw refusal("event_id_conflict", asked[0]!)
    const rows = await runner.run(statement, acceptValues(asked))
    for (const [i, message] of asked.entries()) {
      const result = judge(rows[i]!, message)
      if (result instanceof PosthornError) throw result
      results[messages.indexOf(message)] = result
    }
  }
}

/** Null: not decided yet. */
function judge(row: Row, message: NewMessage): Result | null {
  const verdict = row.verdict as Verdict
  switch (verdict) {
    case "again":
      return null
    case "new": {
      const dueAt = message.wakeAt
      const lanes = ((row.lanes as string[] | null) ?? []).map((endpointId) => ({
        endpointId,
        appId: row.app_id as string,
        dueAt,
      }))
      const { id, receivedAt, deliverAt } = message
      return { messageId: id, receivedAt, deliverAt, matched: lanes.length, duplicate: false, lanes }
    }
    case "duplicate":
      return {
        messageId: row.used_by as string,
        receivedAt: Number(row.prior_received_at ?? message.receivedAt),
        deliverAt: (row.prior_deliver_at as number | null) ?? message.deliverAt,
        matched: Number(row.prior_matched ?? 0),
        duplicate: true,
        lanes: [],
      }
    default:
      return refusal(verdict, message, row.ordered_endpoint as string | null)
  }
}

function refusal(
  verdict: Exclude<Verdict, "new" | "again" | "duplicate">,
  message: NewMessage,
  orderedEndpoint: string | null = null,
): PosthornError {
  switch (verdict) {
    case "no_application":
      return notFound("application", message.app)
    case "key_conflict":
      return new PosthornError("conflict", "this idempotency key was used for another message", {
        field: "idempotencyKey",
      })
    case "event_id_conflict":
      return new PosthornError("conflict", `a message with eventId "${message.eventId}" exists already`, {
        field: "eventId",
      })
    case "priority_refused":
      return new PosthornError(
        "invalid_input",
        `priority cannot be given: endpoint ${orderedEndpoint} is ordered`,
        {
          field: "priority",
        },
      )
    default:
      return verdict satisfies never
  }
}
