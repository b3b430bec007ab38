/** The real engine and store in a world that a model test rules: receivers, time, crashes and a store that fails. */
import { expect } from "vitest"
import { PosthornError } from "../../src/core/errors.ts"
import { openPosthorn, type Posthorn } from "../../src/posthorn.ts"
import type { Store } from "../../src/store/store.ts"
import type { OutboundRequest, Transport, TransportResult } from "../../src/transport/transport.ts"
import { Calls } from "../support/calls.ts"
import { TestClock } from "../support/clock.ts"
import type { Ground, Row } from "../support/ground.ts"
import { wrapLanes } from "../support/wrap-lanes.ts"

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
const FALLIBLE = ["acceptMany", "amendIfUnchanged", "stepTaskIfCurrent", "purge"] as const

interface KillableStore extends Store {
  kill(): Promise<void>
}

export class World {
  readonly clock = new TestClock()
  readonly moods = new Map<string, Mood>()
  readonly receipts: Receipt[] = []
  readonly ground: Ground
  posthorn!: Posthorn
  #store!: KillableStore
  #calls!: Calls
  /** How the next fallible operations fail: before they are applied, or after, with the answer lost. */
  readonly #failures: ("before" | "after")[] = []

  constructor(ground: Ground) {
    this.ground = ground
  }

  async open(): Promise<void> {
    this.#calls = new Calls()
    this.posthorn = await openPosthorn(
      {
        ...this.ground.options,
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
        wrapStore: (store) => this.#calls.watch(this.#fallible(store as KillableStore)),
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

  /**
   * The process is gone: threads and connections end in the middle of what they do, the outcomes of requests in flight are lost.
   */
  async crash(): Promise<void> {
    this.#failures.length = 0
    this.posthorn.abandon()
    await this.#store.kill()
    if (this.ground.kind === "postgres") await this.#reap()
    await this.open()
  }

  /** The crashed worker's lease has run out, and another one notices: as it would be in ten seconds, if the test waited for them. */
  async #reap(): Promise<void> {
    do {
      await this.ground.sql("UPDATE workers SET lease_until = '-infinity'")
      await this.ground.sql("SELECT posthorn_reap()")
      // Not yet if a statement of the crashed one is still being carried out.
    } while ((await this.ground.sql("SELECT id FROM workers")).length > 0)
  }

  async restart(): Promise<void> {
    this.#failures.length = 0
    await this.close()
    await this.open()
  }

  /** Lets everything that needs no time to pass come to rest. */
  quiet(): Promise<void> {
    return this.#calls.whenAnswered(this.posthorn.engine)
  }

  /** Time goes on while it closes: outcomes that could not be written are tried again. */
  async close(): Promise<void> {
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

  rows(where = "true"): Promise<Row[]> {
    return this.ground.sql(`SELECT * FROM webhook_deliveries WHERE ${where} ORDER BY seq`)
  }

  messages(): Promise<Row[]> {
    return this.ground.sql("SELECT id, matched, deliver_at FROM messages")
  }

  async expectNoPayloadMissing(): Promise<void> {
    const orphans = "message_id NOT IN (SELECT id FROM messages)"
    expect(await this.rows(orphans), "deliveries without a payload").toEqual([])
  }

  /** How many attempts each delivery has. */
  async attempts(): Promise<Map<string, number>> {
    const counts = await this.ground.sql(
      "SELECT delivery_id, count(*) AS n FROM attempts GROUP BY delivery_id",
    )
    return new Map(counts.map(({ delivery_id, n }) => [delivery_id as string, n as number]))
  }

  #fallible(store: KillableStore): Store {
    this.#store = store
    const sessions = wrapLanes(store, (session) => ({
      fetch: (...args) => this.#mayFail(() => session.fetch(...args), "before"),
      settleIfClaimed: (...args) => this.#mayFail(() => session.settleIfClaimed(...args)),
      giveBack: (...args) => this.#mayFail(() => session.giveBack(...args)),
    }))
    const wrapped: { [name: string]: unknown } = { ...sessions }
    for (const name of FALLIBLE) {
      const real = store[name] as (...args: unknown[]) => Promise<unknown>
      wrapped[name] = (...args: unknown[]) => this.#mayFail(() => real(...args))
    }
    return wrapped as unknown as Store
  }

  /** `always`: a fetch whose reply is lost is the session's own affair; seen from here it fails before. */
  async #mayFail<T>(call: () => Promise<T>, always?: "before"): Promise<T> {
    const next = this.#failures.shift()
    const failure = next === undefined ? undefined : (always ?? next)
    if (failure === "before") throw new PosthornError("store_unavailable", "the test refuses this")
    const answer = await call()
    if (failure === "after") throw new PosthornError("store_unavailable", "the test loses this answer")
    return answer
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
        const { messageId } = request.webhook!
        this.receipts.push({ endpoint, messageId, ok: mood === "fine" })
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
      reachOf: () => null,
      forget() {},
      interrupt: () => {
        const all = [...underWay]
        for (const interrupt of all) interrupt()
        return all.length
      },
      async close() {},
    }
  }
}
