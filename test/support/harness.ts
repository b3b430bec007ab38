/**
 * The real library on a real store (which one, see `combination.ts`), with a clock that the test moves and a real receiver.
 * Everything is taken down after the test.
 */
import { onTestFinished } from "vitest"
import type { Clock } from "../../src/core/clock.ts"
import type { AttemptEvent, WebhookEvent } from "../../src/observe/public-events.ts"
import type { PosthornOptions } from "../../src/options.ts"
import { openPosthorn, type Posthorn, type Replacements } from "../../src/posthorn.ts"
import type { EndpointInput } from "../../src/resources/endpoints.ts"
import { Guard } from "../../src/transport/egress/guard.ts"
import { type EgressInput, parseEgress } from "../../src/transport/egress/settings.ts"
import { Calls } from "./calls.ts"
import { TestClock } from "./clock.ts"
import { freshGround } from "./combination.ts"
import type { FileGround, Ground, Row, Value } from "./ground.ts"
import { Receiver } from "./receiver.ts"

export { temporaryFolder } from "./combination.ts"

export interface HarnessOptions extends Partial<PosthornOptions>, Replacements {
  /** Opened at once unless told otherwise. */
  open?: boolean
  /** Instead of a fresh one on the store that the test runs on. */
  ground?: Ground
}

/** The receivers of tests are on this machine, on any port. */
export const LOOPBACK: EgressInput = { allow: ["127.0.0.0/8"], ports: "any" }

export function loopbackGuard(clock: Clock): Guard {
  return new Guard(parseEgress(LOOPBACK), clock)
}

export class Harness {
  readonly clock: TestClock
  readonly receiver: Receiver
  readonly ground: Ground
  readonly events: WebhookEvent[] = []
  readonly #counts = new Map<WebhookEvent["type"], number>()
  readonly #options: HarnessOptions
  readonly #watchers = new Set<() => void>()
  readonly #calls = new Calls()
  #posthorn: Posthorn | null = null

  private constructor(options: HarnessOptions, ground: Ground, receiver: Receiver) {
    this.#options = options
    this.clock = options.clock instanceof TestClock ? options.clock : new TestClock()
    this.ground = ground
    this.receiver = receiver
  }

  static async start(options: HarnessOptions = {}): Promise<Harness> {
    const ground = options.ground ?? (await freshGround({ migrated: true }))
    const harness = new Harness(options, ground, await Receiver.start())
    onTestFinished(async () => {
      harness.receiver.requests.length = 0
      await harness.#posthorn?.close()
      await harness.receiver.close()
    })
    if (options.open !== false) await harness.open()
    return harness
  }

  get posthorn(): Posthorn {
    if (this.#posthorn === null) throw new Error("not open")
    return this.#posthorn
  }

  async open(more: Partial<PosthornOptions> = {}): Promise<Posthorn> {
    const {
      open: _open,
      clock: _clock,
      ground: _ground,
      random,
      transport,
      wrapStore,
      instruments,
      // By default no monitor: it would read the store whenever a test moves the clock.
      monitorIntervalMs = null,
      tracer,
      ...options
    } = this.#options
    this.#posthorn = await openPosthorn(
      {
        ...this.ground.options,
        logger: "silent",
        closeTimeoutMs: 0,
        egress: LOOPBACK,
        ...options,
        ...more,
      },
      {
        clock: this.clock,
        monitorIntervalMs,
        ...(random === undefined ? {} : { random }),
        ...(transport === undefined ? {} : { transport }),
        ...(instruments === undefined ? {} : { instruments }),
        ...(tracer === undefined ? {} : { tracer }),
        wrapStore: (store) => this.#calls.watch(wrapStore?.(store) ?? store),
      },
    )
    this.#posthorn.on("gateway:webhooks", (event) => {
      this.events.push(event)
      this.#counts.set(event.type, (this.#counts.get(event.type) ?? 0) + 1)
      for (const watcher of this.#watchers) watcher()
    })
    return this.#posthorn
  }

  /** Only on SQLite. */
  get file(): string {
    if (this.ground.kind !== "sqlite") throw new Error("there is no file: this test belongs to SQLite alone")
    return (this.ground as FileGround).file
  }

  /** Stops and starts again on the same data. */
  async restart(more: Partial<PosthornOptions> = {}): Promise<Posthorn> {
    await this.close()
    return this.open(more)
  }

  async close(): Promise<void> {
    await this.#posthorn?.close()
    this.#posthorn = null
  }

  /** An application "acme" with one endpoint at the path. */
  async endpoint(input: Partial<EndpointInput> = {}, path = "/"): Promise<string> {
    const { applications } = this.posthorn
    // Not a list: the first list starts a third thread of the SQLite store, which costs each test 50 ms of CPU.
    const isMissing = await applications.get("acme").catch(() => true)
    if (isMissing === true) await applications.create({ uid: "acme", name: "Acme" })
    return (await this.posthorn.endpoints.create("acme", { url: this.receiver.url(path), ...input })).id
  }

  async send(payload: unknown = { n: 1 }, more: object = {}): Promise<string> {
    return (await this.posthorn.send("acme", { eventType: "invoice.paid", payload, ...more })).id
  }

  /** Resolves when so many events of this type have been published. */
  async published<T extends WebhookEvent["type"]>(
    type: T,
    count: number,
  ): Promise<Extract<WebhookEvent, { type: T }>[]> {
    const found = () =>
      this.events.filter((event): event is Extract<WebhookEvent, { type: T }> => event.type === type)
    await new Promise<void>((resolve) => {
      const check = () => {
        if ((this.#counts.get(type) ?? 0) < count) return
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
    return found()
  }

  /**
   * Resolves when everything that was set off up to now has run its course: what was asked of the store is answered, and no lane
   * is at work. Never while the receiver holds an answer back.
   */
  async quiet(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      await this.calm()
      await this.posthorn.engine?.whenIdle()
    }
  }

  /** As `quiet`, also while the receiver holds answers back. */
  calm(): Promise<void> {
    return this.#calls.whenAnswered(this.posthorn.engine)
  }

  /** One poll now, and everything that follows from it. */
  async poll(): Promise<void> {
    await this.posthorn.engine!.pollOnce()
    await this.calm()
  }

  /** Lets so much time pass and resolves with the attempt that is made at its end; none may be made a moment before. */
  async attemptAfter(ms: number): Promise<AttemptEvent> {
    const attempts = () => this.events.filter(({ type }) => type === "delivery.attempt").length
    const before = attempts()
    this.clock.advance(ms - 1)
    await this.quiet()
    if (attempts() > before) throw new Error(`an attempt was made before ${ms} ms had passed`)
    this.clock.advance(1)
    return (await this.published("delivery.attempt", before + 1))[before]!
  }

  /** Runs SQL that an operator types, over a connection of their own. */
  sql(text: string, ...values: Value[]): Promise<Row[]> {
    return this.ground.sql(text, ...values)
  }

  rows(): Promise<Row[]> {
    return this.sql("SELECT * FROM webhook_deliveries ORDER BY seq")
  }
}
