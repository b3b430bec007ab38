/** Instruments that keep every measurement, by name. */
import type { AttemptSpan, Instruments } from "../../src/observe/instruments.ts"

type Name = keyof Instruments | "mark" | "ended"

export class Recorder implements Instruments {
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
  notificationSettled = (...args: unknown[]) => this.#add("notificationSettled", ...args)
  slotsChanged = (...args: unknown[]) => this.#add("slotsChanged", ...args)
  attemptStarted = (...args: unknown[]): AttemptSpan => {
    this.#add("attemptStarted", ...args)
    return {
      mark: (phase) => this.#add("mark", phase),
      ended: (result) => this.#add("ended", result),
    }
  }
}
