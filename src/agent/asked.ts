/** The server's wait for the outcome of one event: which attempt it is, and the `working` frames that keep the wait alive. */
import type { Clock, Timer } from "../core/clock.ts"
import { type AckFrame, type AgentFrame, type EventFrame, MOST_WORKING_MS } from "../core/relay-protocol.ts"
import type { AgentOutcome } from "./outcome.ts"

/** Deadlines may be short, and a server takes 300 frames without a use in ten seconds: sixteen events send 267. */
const LEAST_INTERVAL_MS = 600

export type Send = (frame: AgentFrame) => void

export class Asked {
  readonly #frame: EventFrame
  readonly #clock: Clock
  readonly #send: Send
  readonly #since: number
  #timer: Timer

  constructor(frame: EventFrame, clock: Clock, send: Send) {
    this.#frame = frame
    this.#clock = clock
    this.#send = send
    this.#since = clock.elapsedMs()
    this.#timer = this.#nextWorking()
  }

  answer(outcome: AgentOutcome): void {
    this.#timer.cancel()
    this.#send(ackOf(this.#frame, outcome))
  }

  /** The connection ended, or the server asks anew. */
  drop(): void {
    this.#timer.cancel()
  }

  #nextWorking(): Timer {
    const { id, token, deadline } = this.#frame
    return this.#clock.setTimer(Math.max(LEAST_INTERVAL_MS, deadline / 2), () => {
      if (this.#clock.elapsedMs() - this.#since >= MOST_WORKING_MS) return
      this.#send({ kind: "working", id, token })
      this.#timer = this.#nextWorking()
    })
  }
}

export function ackOf({ id, attempt, token }: EventFrame, outcome: AgentOutcome): AckFrame {
  const { result, status, error, retryAfterSeconds, response } = outcome
  return { kind: "ack", id, attempt, token, result, status, error, retryAfter: retryAfterSeconds, response }
}
