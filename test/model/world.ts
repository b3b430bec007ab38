/** The real engine and store in a world that a model test rules: receivers, time, crashes and a store that fails. */
import { rmSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { expect } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import type { SqliteStore } from "../../src/store/sqlite/store.ts"
import type { Store } from "../../src/store/store.ts"
import type { OutboundRequest, Transport, TransportResult } from "../../src/transport/transport.ts"
import { TestClock } from "../support/clock.ts"

export type Mood = "fine" | "broken" | "hangs" | "rejects" | "gone" | "busy"

export interface Receipt {
  readonly endpoint: string
  readonly messageId: string
  readonly ok: boolean
}

const STATUS: { readonly [mood in Exclude<Mood, "hangs">]: number } = {
  fine: 200,
  broken: 500,
  rejects: 400,
  gone: 410,
  busy: 429,
}
/** Operations that may be made to fail: what the engine and senders do, not what the test looks with. */
const FALLIBLE = ["accept", "fetch", "settle", "giveBack", "amend", "stepTask", "purge"] as const

export class World {
  readonly clock = new TestClock()
  readonly moods = new Map<string, Mood>()
  readonly receipts: Receipt[] = []
  readonly file: string
  posthorn!: Posthorn
  crashes = 0
  #store!: SqliteStore
  /** How the next fallible operations fail: before they are applied, or after, with the answer lost. */
  readonly #failures: ("before" | "after")[] = []

  constructor(file: string) {
    this.file = file
  }

  async open(): Promise<void> {
    this.posthorn = await openPosthorn(
      {
        store: `sqlite:${this.file}`,
        logger: "silent",
        closeTimeoutMs: 0,
        encryptionKey: "00".repeat(32),
        onFatal() {},
        egress: { allow: ["127.0.0.0/8"], ports: "any" },
      },
      {
        clock: this.clock,
        random: () => 0.5,
        transport: this.#transport(),
        wrapStore: (store) => this.#fallible(store as SqliteStore),
      },
    )
  }

  fail(...how: ("before" | "after")[]): void {
    this.#failures.push(...how)
  }

  heal(): void {
    this.#failures.length = 0
    for (const endpoint of this.moods.keys()) this.moods.set(endpoint, "fine")
  }

  /** The process is gone: threads end in the middle of what they do, requests under way are never heard of again. */
  async crash(): Promise<void> {
    this.crashes++
    this.#failures.length = 0
    this.posthorn.abandon()
    await this.#store.kill()
    await this.open()
  }

  async restart(): Promise<void> {
    this.#failures.length = 0
    await this.#close()
    await this.open()
  }

  /** Lets everything that needs no time to pass come to rest. */
  async quiet(): Promise<void> {
    for (let calm = 0, seen = -1; calm < 3; ) {
      for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve))
      await this.#store.check()
      calm = this.receipts.length === seen ? calm + 1 : 0
      seen = this.receipts.length
    }
  }

  async end(): Promise<void> {
    await this.#close()
    for (const suffix of ["", "-wal", "-shm", "-owner"]) rmSync(this.file + suffix, { force: true })
  }

  /** Time goes on while it closes: outcomes that could not be written are tried again. */
  async #close(): Promise<void> {
    let closed = false
    const closing = this.posthorn.close().finally(() => {
      closed = true
    })
    while (!closed) {
      this.clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await closing
  }

  rows(where = "1"): Record<string, unknown>[] {
    return this.#query(`SELECT * FROM webhook_deliveries WHERE ${where} ORDER BY seq`)
  }

  messages(): Record<string, unknown>[] {
    return this.#query("SELECT id, matched FROM messages")
  }

  expectNoPayloadMissing(): void {
    const orphans = "message_id NOT IN (SELECT id FROM messages)"
    expect(this.rows(orphans), "deliveries without a payload").toEqual([])
  }

  attempts(deliveryId: string): number {
    return this.#query("SELECT count(*) AS n FROM attempts WHERE delivery_id = ?", deliveryId)[0]!.n as number
  }

  integrity(): unknown {
    return this.#query("PRAGMA integrity_check")[0]!.integrity_check
  }

  #query(sql: string, ...values: string[]): Record<string, unknown>[] {
    const db = new DatabaseSync(this.file, { readOnly: true })
    try {
      return db.prepare(sql).all(...values)
    } finally {
      db.close()
    }
  }

  #fallible(store: SqliteStore): Store {
    this.#store = store
    const wrapped: { [name: string]: unknown } = { ...store }
    for (const name of FALLIBLE) {
      const real = store[name] as (...args: unknown[]) => Promise<unknown>
      wrapped[name] = async (...args: unknown[]) => {
        const failure = this.#failures.shift()
        if (failure === "before") throw new PosthornError("store_unavailable", "the test refuses this")
        const answer = await real(...args)
        if (failure === "after") throw new PosthornError("store_unavailable", "the test loses this answer")
        return answer
      }
    }
    return wrapped as unknown as Store
  }

  #transport(): Transport {
    const underWay = new Set<() => void>()
    const result = (outcome: TransportResult["outcome"], status: number | null): TransportResult => ({
      outcome,
      responseStatus: status,
      responseBody: null,
      responseTruncated: false,
      detail: null,
    })
    return {
      send: (request: OutboundRequest) => {
        const endpoint = new URL(request.url).pathname.slice(1)
        const mood = this.moods.get(endpoint) ?? "fine"
        this.receipts.push({ endpoint, messageId: request.headers["webhook-id"]!, ok: mood === "fine" })
        if (mood !== "hangs") {
          const status = STATUS[mood]
          return Promise.resolve(
            result(
              { kind: "response", status, excerpt: "", retryAfter: mood === "busy" ? "30" : null },
              status,
            ),
          )
        }
        return new Promise((resolve) => {
          const end = (outcome: TransportResult["outcome"]) => {
            deadline.cancel()
            underWay.delete(interrupt)
            resolve(result(outcome, null))
          }
          const deadline = this.clock.setTimer(request.timeoutMs, () =>
            end({ kind: "failure", cause: "timeout" }),
          )
          const interrupt = () => end({ kind: "interrupted" })
          underWay.add(interrupt)
        })
      },
      forget() {},
      interrupt: () => {
        for (const interrupt of underWay) interrupt()
      },
      async close() {},
    }
  }
}
