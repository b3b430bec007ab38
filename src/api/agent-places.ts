/** Limits the connections of agents that are open or being opened. One application cannot take the places of all others. */
import type { Duplex } from "node:stream"
import { ApiError } from "./errors.ts"

export const MOST_CONNECTIONS = 10_000
export const MOST_OF_APPLICATION = 2000

export class AgentPlaces {
  #taken = 0
  readonly #byApplication = new Map<string, number>()

  /** Takes a place until the socket closes. Throws a 503. */
  take(socket: Duplex): void {
    this.#taken++
    socket.once("close", () => this.#taken--)
    if (this.#taken > MOST_CONNECTIONS) throw tooMany("too many agents are connected")
  }

  /** As `take`, of one application. The socket must be open. */
  takeOf(appId: string, socket: Duplex): void {
    const taken = this.#of(appId) + 1
    this.#byApplication.set(appId, taken)
    socket.once("close", () => this.#release(appId))
    if (taken > MOST_OF_APPLICATION) throw tooMany("too many agents of this application are connected")
  }

  #release(appId: string): void {
    const left = this.#of(appId) - 1
    if (left === 0) this.#byApplication.delete(appId)
    else this.#byApplication.set(appId, left)
  }

  #of(appId: string): number {
    return this.#byApplication.get(appId) ?? 0
  }
}

function tooMany(detail: string): ApiError {
  return ApiError.of(503, "overloaded", `${detail}; try again`, 5)
}
