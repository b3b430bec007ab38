/**
 * The events that an agent has in hand. Each runs once, even if the connection ends and the server sends it again: the outcome goes to the
 * connection that asked last.
 */
import type { Clock } from "../core/clock.ts"
import { type EventFrame, MOST_CREDIT, type SettledFrame } from "../core/relay-protocol.ts"
import { Asked, ackOf, type Send } from "./asked.ts"
import { type AgentEvent, type AgentHandler, eventFrom } from "./event.ts"
import type { AgentHandled, AgentSettled } from "./options.ts"
import { type AgentOutcome, outcomeOf } from "./outcome.ts"
import { type Attempt, Remembered } from "./remembered.ts"

/** Acknowledgements that the server has not settled. It commits in batches of fewer. */
const MOST_UNSETTLED = 1000

export interface InFlightEvents {
  send: Send
  handled(handled: AgentHandled): void
  settled(settled: AgentSettled): void
  /** Nothing runs, and every acknowledgement is settled. */
  idle(): void
}

interface Run {
  readonly event: AgentEvent
  latest: Attempt
  /** Null: the connection that asked has ended. */
  asked: Asked | null
}

export class InFlight {
  readonly #handler: AgentHandler
  readonly #credit: number
  readonly #clock: Clock
  readonly #events: InFlightEvents
  readonly #remembered: Remembered
  /** By the delivery's id, those in the queue too. */
  readonly #runs = new Map<string, Run>()
  readonly #queue: Run[] = []
  readonly #unsettled = new Set<string>()
  #running = 0

  constructor(handler: AgentHandler, credit: number, clock: Clock, events: InFlightEvents) {
    this.#handler = handler
    this.#credit = credit
    this.#clock = clock
    this.#events = events
    this.#remembered = new Remembered(clock)
  }

  get isIdle(): boolean {
    return this.#runs.size === 0 && this.#unsettled.size === 0
  }

  /** Returns what is wrong with the event, or null. */
  take(frame: EventFrame): string | null {
    if (this.#unsettled.size >= MOST_UNSETTLED)
      return `${MOST_UNSETTLED} acknowledgements are not settled, and more events come`
    const known = this.#remembered.find(frame.id, frame)
    if (known !== null) this.#repeat(frame, known)
    else this.#ask(frame)
    const asked = [...this.#runs.values()].filter((run) => run.asked !== null).length
    // The server may have given up on events whose handlers still run.
    const most = this.#credit + MOST_CREDIT
    return asked > most ? `more than ${most} events are in flight` : null
  }

  settled({ id, attempt, status }: SettledFrame): void {
    if (!this.#unsettled.delete(id)) return
    this.#remembered.forget(id)
    this.#events.settled({ deliveryId: id, attempt, status })
    this.#checkIdle()
  }

  /** The server does not count the acknowledgement. It sends the event again, and gets the same outcome. */
  late(id: string): void {
    if (this.#unsettled.delete(id)) this.#checkIdle()
  }

  /** The connection has ended. Handlers go on. */
  disconnected(): void {
    this.#unsettled.clear()
    for (const run of this.#runs.values()) {
      run.asked?.drop()
      run.asked = null
    }
  }

  #ask(frame: EventFrame): void {
    const known = this.#runs.get(frame.id)
    const run: Run = known ?? { event: eventFrom(frame), latest: frame, asked: null }
    run.asked?.drop()
    run.asked = new Asked(frame, this.#clock, this.#events.send)
    run.latest = { attempt: frame.attempt, manual: frame.manual }
    if (known !== undefined) return
    this.#runs.set(frame.id, run)
    this.#queue.push(run)
    this.#startNext()
  }

  /** Handlers of an earlier connection may still run: new events wait until they leave room. */
  #startNext(): void {
    while (this.#running < this.#credit) {
      const run = this.#queue.shift()
      if (run === undefined) return
      this.#running++
      void this.#run(run)
    }
  }

  async #run(run: Run): Promise<void> {
    const startedAt = this.#clock.elapsedMs()
    const outcome = await outcomeOf(this.#handler, run.event)
    const id = run.event.deliveryId
    this.#running--
    this.#runs.delete(id)
    this.#remembered.keep(id, run.latest, outcome)
    if (run.asked !== null) {
      this.#unsettled.add(id)
      run.asked.answer(outcome)
    }
    const durationMs = Math.round(this.#clock.elapsedMs() - startedAt)
    this.#events.handled({ event: run.event, outcome, durationMs, isRepeated: false })
    this.#startNext()
    this.#checkIdle()
  }

  #repeat(frame: EventFrame, outcome: AgentOutcome): void {
    this.#unsettled.add(frame.id)
    this.#events.send(ackOf(frame, outcome))
    this.#events.handled({ event: eventFrom(frame), outcome, durationMs: 0, isRepeated: true })
  }

  #checkIdle(): void {
    if (this.isIdle) this.#events.idle()
  }
}
