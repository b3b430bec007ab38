/** Instruments and tracing that keep every call, by name. */
import type { Instruments } from "../../src/observe/instruments.ts"
import type { AttemptSpan, Tracing } from "../../src/observe/tracing.ts"

type Name = keyof Instruments | keyof Tracing | keyof AttemptSpan

export class Recorder implements Instruments, Tracing {
  readonly #calls: { readonly name: Name; readonly args: readonly unknown[] }[] = []

  /** The arguments of every call of this method. */
  of(name: Name): readonly (readonly unknown[])[] {
    return this.#calls.filter((call) => call.name === name).map(({ args }) => args)
  }

  clear(): void {
    this.#calls.length = 0
  }

  #add(name: Name, ...args: unknown[]): void {
    this.#calls.push({ name, args })
  }

  now = () => performance.now()
  messagesAccepted = (...args: unknown[]) => this.#add("messagesAccepted", ...args)
  lanesClaimed = (...args: unknown[]) => this.#add("lanesClaimed", ...args)
  deliveriesFetched = (...args: unknown[]) => this.#add("deliveriesFetched", ...args)
  outcomesSettled = (...args: unknown[]) => this.#add("outcomesSettled", ...args)
  retriesDeferred = (...args: unknown[]) => this.#add("retriesDeferred", ...args)
  leaseRenewed = (...args: unknown[]) => this.#add("leaseRenewed", ...args)
  lanesTakenOver = (...args: unknown[]) => this.#add("lanesTakenOver", ...args)
  storeFailed = (...args: unknown[]) => this.#add("storeFailed", ...args)
  redisFailed = (...args: unknown[]) => this.#add("redisFailed", ...args)
  requestAnswered = (...args: unknown[]) => this.#add("requestAnswered", ...args)
  inboundAnswered = (...args: unknown[]) => this.#add("inboundAnswered", ...args)
  agentConnection = (...args: unknown[]) => this.#add("agentConnection", ...args)
  eventAcknowledged = (...args: unknown[]) => this.#add("eventAcknowledged", ...args)
  notificationSettled = (...args: unknown[]) => this.#add("notificationSettled", ...args)
  slotsChanged = (...args: unknown[]) => this.#add("slotsChanged", ...args)
  publishStarted = (...args: unknown[]) => {
    this.#add("publishStarted", ...args)
    return null
  }
  eventStreamReaders = (...args: unknown[]) => this.#add("eventStreamReaders", ...args)
  eventStreamDropped = (...args: unknown[]) => this.#add("eventStreamDropped", ...args)
  attemptStarted = (...args: unknown[]): AttemptSpan => {
    this.#add("attemptStarted", ...args)
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
    return {
      traceId,
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      mark: (phase) => this.#add("mark", phase),
      peer: (address) => this.#add("peer", address),
      ended: (attempt) => this.#add("ended", attempt),
    }
  }
}
