/** Accepting messages, many calls in one statement. */
import { notFound, PosthornError } from "../../core/errors.ts"
import type { Row } from "../rows.ts"
import type { Accepted, NewMessage } from "../store.ts"
import { ACCEPT, ACCEPT_IN_TRANSACTION, acceptValues, generationOf, type Verdict } from "./accept.ts"
import { Batcher } from "./batcher.ts"
import type { Runner } from "./connection.ts"
import type { Context } from "./context.ts"
import { isConnectionTrouble, isMissingPartition, toPosthornError } from "./errors.ts"
import type { Statement } from "./statement.ts"

/** The most that one statement carries. */
const MOST_BYTES = 4 * 1024 * 1024
const MOST_MESSAGES = 500
const MOST_DELIVERIES = 5000
/** How many endpoints a message is taken to have before its application's first one was accepted. */
const UNKNOWN_FAN_OUT = 250
const MOST_REMEMBERED = 10_000

/** A key that somebody else holds in an open transaction keeps a call waiting for so long and no longer. */
const TRIES = 3

/** A `pg` client in the user's own transaction. */
interface Client {
  query(query: { text: string; values: unknown[] }): Promise<{ rows: Row[] }>
}

export class Acceptor {
  readonly #context: Context
  readonly #single: Batcher<NewMessage, Accepted | PosthornError>
  /** How many endpoints an application's last message to all had. */
  readonly #fanOut = new Map<string, number>()

  constructor(context: Context) {
    this.#context = context
    this.#single = new Batcher(
      (messages) => this.#acceptEach(messages),
      // One at a time keeps the order of the calls, and is enough: 12 100 sends a second against 12 600 with four.
      { atOnce: 1, most: 1 },
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
    const result = await this.#single.add(messages[0]!)
    if (result instanceof PosthornError) throw result
    return [result]
  }

  /** Each for itself: one that is refused harms none of the others. */
  async #acceptEach(messages: readonly NewMessage[]): Promise<(Accepted | PosthornError)[]> {
    let rows: readonly Row[]
    try {
      rows = await this.#run(messages)
    } catch (error) {
      const cause = error instanceof PosthornError ? error.cause : error
      if (messages.length === 1 || isConnectionTrouble(cause)) throw error
      // Whatever one of them did wrong, the others did not.
      const results: (Accepted | PosthornError)[] = []
      for (const message of messages)
        results.push(...(await this.#acceptEach([message]).catch((alone) => [toPosthornError(alone)])))
      return results
    }
    const results = rows.map((row, i) => judge(row, messages[i]!))
    if (this.#fanOut.size > MOST_REMEMBERED) this.#fanOut.clear()
    for (const [i, message] of messages.entries()) {
      const result = results[i]!
      if (message.to === null && result !== null && "matched" in result)
        this.#fanOut.set(addressee(message), result.matched)
    }
    const undecided = messages.filter((_, i) => results[i] === null)
    const decided = undecided.length === 0 ? [] : await this.#acceptEach(undecided)
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
    const run = async ({ text }: Statement, values: readonly unknown[]) =>
      (await client.query({ text, values: [...values] })).rows
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
function judge(row: Row, message: NewMessage): Accepted | PosthornError | null {
  const verdict = row.verdict as Verdict
  switch (verdict) {
    case "again":
      return null
    case "new": {
      const dueAt = Math.max(message.receivedAt, message.deliverAt ?? 0)
      const lanes = ((row.lanes as string[] | null) ?? []).map((endpointId) => ({
        endpointId,
        appId: row.app_id as string,
        dueAt,
      }))
      const { id, receivedAt } = message
      return { messageId: id, receivedAt, matched: lanes.length, duplicate: false, lanes }
    }
    case "duplicate":
      return {
        messageId: row.used_by as string,
        receivedAt: Number(row.prior_received_at ?? message.receivedAt),
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
