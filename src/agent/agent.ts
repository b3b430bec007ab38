/** The agent's side of the relay for a program that takes webhooks itself: connects outward, for ever, and hands each event over. */
import { type Random, scheduledDelay } from "../core/backoff.ts"
import { type Clock, systemClock, type Timer } from "../core/clock.ts"
import { PosthornError } from "../core/errors.ts"
import { CLOSE, type WelcomeFrame } from "../core/relay-protocol.ts"
import { Connection, type OpenFrame } from "./connection.ts"
import type { ConnectionEnd } from "./connection-end.ts"
import { forwardTo } from "./forward.ts"
import { InFlight } from "./in-flight.ts"
import { type AgentCallbacks, type AgentOptions, type AgentSettings, parseOptions } from "./options.ts"
import { clearTextWarning } from "./server-url.ts"

/** With full jitter: a random part of it. */
const DELAYS = { strategy: "exponential", base: 500, factor: 2, cap: 60_000 } as const
/** A connection that was open for so long ends a series of failures. */
const LASTING_MS = 10_000

/** For tests. @internal */
export interface Replacements {
  readonly clock?: Clock
  readonly random?: Random
}

/** Returns at once and connects in the background. Throws only for invalid options. */
export function connectAgent(options: AgentOptions, replacements: Replacements = {}): AgentClient {
  return new AgentClient(parseOptions(options), replacements)
}

type Phase =
  | { readonly kind: "connecting"; readonly connection: Connection }
  | { readonly kind: "connected"; readonly connection: Connection; readonly since: number; isLeft: boolean }
  | { readonly kind: "waiting"; readonly timer: Timer }
  /** `close` was called, there is no connection, and handlers still run. */
  | { readonly kind: "finishing" }
  | { readonly kind: "ended" }

export class AgentClient {
  /** Resolves after `close` with null, or with the error that no other try would mend: code `agent_refused`. */
  readonly closed: Promise<PosthornError | null>
  readonly #settings: AgentSettings
  readonly #clock: Clock
  readonly #random: Random
  readonly #inFlight: InFlight
  readonly #finish: (error: PosthornError | null) => void
  #phase: Phase
  #failures = 0
  /** The address is a Posthorn server's. */
  #wasWelcomed = false
  /** Set by `close`: ends the wait for events in flight. */
  #closing: Timer | null = null

  /** @internal */
  constructor(settings: AgentSettings, { clock = systemClock(), random = Math.random }: Replacements) {
    this.#settings = settings
    this.#clock = clock
    this.#random = random
    const { promise, resolve } = Promise.withResolvers<PosthornError | null>()
    this.closed = promise
    this.#finish = resolve
    const { handler, credit, url, logger } = settings
    const handle = handler instanceof URL ? forwardTo(handler, clock) : handler
    this.#inFlight = new InFlight(handle, credit, clock, {
      send: (frame) => this.#connection?.send(frame),
      handled: (handled) => this.#tell("onHandled", handled),
      settled: (settled) => this.#tell("onSettled", settled),
      idle: () => this.#leaveIfIdle(),
    })
    const warning = clearTextWarning(url)
    if (warning !== null) logger.warn(warning)
    this.#phase = this.#dial()
  }

  get isConnected(): boolean {
    return this.#phase.kind === "connected"
  }

  /** Takes no more events, waits until those in flight are settled, at most for `closeTimeoutMs`, and disconnects. */
  async close(): Promise<void> {
    if (this.#closing === null && this.#phase.kind !== "ended") {
      this.#closing = this.#clock.setTimer(this.#settings.closeTimeoutMs, () => this.#end(null))
      if (this.#phase.kind === "connected") this.#phase.connection.send({ kind: "drain" })
      else this.#hangUp({ kind: "finishing" })
      this.#leaveIfIdle()
    }
    await this.closed
  }

  get #connection(): Connection | null {
    return "connection" in this.#phase ? this.#phase.connection : null
  }

  #dial(): Phase {
    const connection = new Connection(this.#settings, this.#clock, this.#settings.logger, {
      welcomed: (frame) => this.#welcomed(connection, frame),
      received: (frame) => this.#received(connection, frame),
      ended: (end) => this.#disconnected(end),
    })
    return { kind: "connecting", connection }
  }

  #welcomed(connection: Connection, { session, epoch }: WelcomeFrame): void {
    this.#wasWelcomed = true
    this.#phase = { kind: "connected", connection, since: this.#clock.elapsedMs(), isLeft: false }
    this.#tell("onConnected", { session, epoch })
  }

  #received(connection: Connection, frame: OpenFrame): void {
    switch (frame.kind) {
      case "event": {
        const problem = this.#inFlight.take(frame)
        return problem === null ? undefined : connection.refuse(problem)
      }
      case "settled":
        return this.#inFlight.settled(frame)
      case "error":
        this.#settings.logger.debug({ frame }, "The server answered with an error")
        return frame.code === "late" && frame.id !== null ? this.#inFlight.late(frame.id) : undefined
      case "drain":
        if (this.#phase.kind === "connected") this.#phase.isLeft = true
        return this.#leaveIfIdle()
      default:
        return frame satisfies never
    }
  }

  /** The server stops, or this agent does. */
  #leaveIfIdle(): void {
    if (!this.#inFlight.isIdle) return
    if (this.#closing !== null) this.#end(null)
    else if (this.#phase.kind === "connected" && this.#phase.isLeft)
      this.#phase.connection.close(CLOSE.done, "the server stops")
  }

  #disconnected({ reason, isFinal, isForeign = false }: ConnectionEnd): void {
    this.#inFlight.disconnected()
    const phase = this.#phase
    if (phase.kind !== "connecting" && phase.kind !== "connected") return
    if (isFinal && !(isForeign && this.#wasWelcomed)) return this.#refused(reason)
    if (this.#closing !== null) {
      this.#phase = { kind: "finishing" }
      return this.#leaveIfIdle()
    }
    const lasted = phase.kind === "connected" && this.#clock.elapsedMs() - phase.since >= LASTING_MS
    this.#failures = lasted ? 1 : this.#failures + 1
    const retryInMs = Math.round(this.#random() * scheduledDelay(DELAYS, this.#failures))
    const timer = this.#clock.setTimer(retryInMs, () => {
      this.#phase = this.#dial()
    })
    this.#phase = { kind: "waiting", timer }
    this.#tell("onDisconnected", { reason, retryInMs })
  }

  #refused(reason: string): void {
    this.#settings.logger.error(`The agent ends: ${reason}`)
    this.#tell("onDisconnected", { reason, retryInMs: null })
    this.#end(new PosthornError("agent_refused", reason))
  }

  #end(error: PosthornError | null): void {
    if (this.#phase.kind === "ended") return
    this.#closing?.cancel()
    this.#hangUp({ kind: "ended" })
    this.#finish(error)
  }

  /** The phase changes first: the end of the connection is then no reason to connect again. */
  #hangUp(next: Phase): void {
    const phase = this.#phase
    this.#phase = next
    if (phase.kind === "waiting") phase.timer.cancel()
    if ("connection" in phase) phase.connection.close(CLOSE.done, "the agent stops")
  }

  /** A callback that throws or rejects is logged. */
  #tell<N extends keyof AgentCallbacks>(name: N, value: Parameters<NonNullable<AgentCallbacks[N]>>[0]): void {
    const complain = (err: unknown) => this.#settings.logger.error({ err }, `The callback ${name} threw`)
    try {
      const callback = this.#settings.callbacks[name] as ((given: unknown) => unknown) | undefined
      const result = callback?.(value)
      if (result instanceof Promise) result.catch(complain)
    } catch (error) {
      complain(error)
    }
  }
}
