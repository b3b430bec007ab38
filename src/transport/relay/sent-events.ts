/** The events that were sent over a connection and are not acknowledged, each with its token and deadline. */
import { BoundedCache } from "../../core/bounded-cache.ts"
import type { Clock, Timer } from "../../core/clock.ts"
import { type AckFrame, type EventFrame, MOST_WORKING_MS } from "../../core/relay-protocol.ts"
import { withoutResponse } from "../result.ts"
import type { TransportResult } from "../transport.ts"

interface Sent {
  readonly id: string
  readonly attempt: number
  readonly token: string
  readonly startedAtMs: number
  readonly timeoutMs: number
  timer: Timer
  resolve(result: TransportResult): void
}

/** `late`: the event is not in flight any more. `foreign`: this connection was not sent it. */
export type AckMatch =
  | { readonly kind: "late" }
  | { readonly kind: "foreign" }
  | { readonly kind: "taken"; resolve(result: TransportResult): void }

/** Ended events whose late acknowledgements are recognised. */
const MOST_PAST = 1000

export class SentEvents {
  readonly #clock: Clock
  readonly #timedOut: () => void
  /** By the delivery's id. */
  readonly #sent = new Map<string, Sent>()
  /** Tokens of events that are not in flight any more, with their ids. */
  readonly #past = new BoundedCache<string, string>(MOST_PAST)

  /** `timedOut` is called after an event ended at its deadline. */
  constructor(clock: Clock, timedOut: () => void) {
    this.#clock = clock
    this.#timedOut = timedOut
  }

  get size(): number {
    return this.#sent.size
  }

  add(event: Pick<EventFrame, "id" | "attempt" | "token">, timeoutMs: number): Promise<TransportResult> {
    const { promise, resolve } = Promise.withResolvers<TransportResult>()
    const { id, attempt, token } = event
    // The lane was lost and claimed again: its former run does not count the outcome.
    const former = this.#sent.get(id)
    if (former !== undefined) this.#remove(former)?.resolve(cutOff("the lane has another owner"))
    const startedAtMs = this.#clock.elapsedMs()
    const timer = this.#clock.setTimer(timeoutMs, () => this.#end(sent))
    const sent: Sent = { id, attempt, token, startedAtMs, timeoutMs, timer, resolve }
    this.#sent.set(id, sent)
    return promise
  }

  /** Ends the event that the acknowledgement is for; the caller resolves it. */
  take({ id, attempt, token }: AckFrame): AckMatch {
    const sent = this.#sent.get(id)
    if (sent?.token === token && sent.attempt === attempt) {
      this.#remove(sent)
      return { kind: "taken", resolve: sent.resolve }
    }
    return { kind: this.#past.get(token) === id ? "late" : "foreign" }
  }

  /** The agent still works on the event: its deadline starts anew, for an hour at most. */
  extend(id: string, token: string): void {
    const sent = this.#sent.get(id)
    if (sent?.token !== token) return
    const leftMs = sent.startedAtMs + MOST_WORKING_MS - this.#clock.elapsedMs()
    sent.timer.cancel()
    sent.timer = this.#clock.setTimer(Math.max(0, Math.min(sent.timeoutMs, leftMs)), () => this.#end(sent))
  }

  /** Interrupts all events, and returns their number. */
  cutOff(detail: string): number {
    const all = [...this.#sent.values()]
    for (const one of all) this.#remove(one)?.resolve(cutOff(detail))
    return all.length
  }

  #end(sent: Sent): void {
    const outcome = { kind: "failure", cause: "timeout" } as const
    this.#remove(sent)?.resolve(withoutResponse(outcome, "the agent did not acknowledge in time"))
    this.#timedOut()
  }

  #remove(sent: Sent): Sent | null {
    if (this.#sent.get(sent.id) !== sent) return null
    this.#sent.delete(sent.id)
    this.#past.set(sent.token, sent.id)
    sent.timer.cancel()
    return sent
  }
}

/** An event that the end of the connection cut off is no attempt. */
export function cutOff(detail: string): TransportResult {
  return withoutResponse({ kind: "interrupted" }, detail)
}
