/**
 * Lanes that are handed what is accepted for them in the same transaction, with no fetch in between: all else that was due there
 * when they were opened is in their worker's hands. What comes due later, their worker is woken for and fetches beside them. Whatever
 * could make it wrong to send closes the lane, and the worker asks again.
 */

import { placesOf } from "./places.ts"

export interface OpenLane {
  readonly token: number
  /** How many more the worker takes. */
  room: number
  /** How many of them are sent at once; below zero, so many wait for their turn. */
  free: number
}

export interface Hand {
  readonly token: number
  readonly starts: boolean
}

export class OpenLanes<L extends OpenLane = OpenLane> {
  readonly #lanes = new Map<string, L>()

  open(endpointId: string, lane: L): void {
    this.#lanes.set(endpointId, lane)
  }

  close(endpointId: string): void {
    this.#lanes.delete(endpointId)
  }

  closeAll(): void {
    this.#lanes.clear()
  }

  get(endpointId: string): L | undefined {
    return this.#lanes.get(endpointId)
  }

  /** Null when it has to be fetched; then what comes after it must not overtake it. */
  take(endpointId: string, payloadBytes: number): Hand | null {
    const lane = this.#lanes.get(endpointId)
    if (lane === undefined) return null
    if (lane.room <= 0) {
      this.close(endpointId)
      return null
    }
    lane.room -= placesOf(payloadBytes)
    return { token: lane.token, starts: lane.free-- > 0 }
  }

  /** One that the worker had is done with. A large one gives one place back of those that it took: such lanes are soon fetched again. */
  settled(endpointId: string, token: number): void {
    const lane = this.#lanes.get(endpointId)
    if (lane?.token !== token) return
    lane.room++
    lane.free++
  }
}
