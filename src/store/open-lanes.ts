/**
 * Lanes that are handed what is accepted for them in the same transaction, with no fetch in between: all else that was due there
 * when they were opened is in their worker's hands. What comes due later, their worker is woken for and fetches beside them. Whatever
 * could make it wrong to send closes the lane, and the worker asks again.
 */

import { placesOf as placesOfPayload } from "./places.ts"

/** So many places each lane has of its own. What a quick one takes beyond them is lent, of what all lanes share. */
const OWN_PLACES = 256
const LENT_PLACES = 8192

export interface OpenLane {
  readonly token: number
  /** How many the worker takes. */
  readonly most: number
  /** How many it has, and how many places its large ones take beyond that. */
  used: number
  large?: number
  /** How many more of them are sent at once; below zero, so many wait for their turn. */
  free: number
}

export interface Hand {
  readonly token: number
  readonly starts: boolean
}

export class OpenLanes<L extends OpenLane = OpenLane> {
  readonly #open = new Map<string, L>()
  /** Closed, with lent places that their workers have not given back. */
  readonly #indebted = new Map<string, L>()
  #lent = 0

  open(endpointId: string, lane: L): void {
    this.#forget(endpointId)
    this.#open.set(endpointId, lane)
    this.#lent += lentTo(lane)
  }

  close(endpointId: string): void {
    const lane = this.#open.get(endpointId)
    if (lane === undefined) return
    this.#open.delete(endpointId)
    if (lentTo(lane) > 0) this.#indebted.set(endpointId, lane)
  }

  closeAll(): void {
    for (const endpointId of this.#open.keys()) this.close(endpointId)
  }

  /** None of those who had anything has it any more. */
  forgetAll(): void {
    this.#open.clear()
    this.#indebted.clear()
    this.#lent = 0
  }

  get(endpointId: string): L | undefined {
    return this.#open.get(endpointId)
  }

  /** Null when it has to be fetched; then what comes after it must not overtake it. */
  take(endpointId: string, payloadBytes: number): Hand | null {
    const lane = this.#open.get(endpointId)
    if (lane === undefined) return null
    const places = placesOf(lane)
    if (places >= lane.most || (places >= OWN_PLACES && this.#lent >= LENT_PLACES)) {
      this.close(endpointId)
      return null
    }
    this.#use(lane, 1, placesOfPayload(payloadBytes) - 1)
    return { token: lane.token, starts: lane.free-- > 0 }
  }

  /** One that the worker had is done with. Large ones give back what they took beyond one place when all are: such lanes are soon fetched again. */
  settled(endpointId: string, token: number): void {
    const lane = this.#open.get(endpointId) ?? this.#indebted.get(endpointId)
    if (lane?.token !== token) return
    this.#use(lane, -1)
    lane.free++
    if (lentTo(lane) === 0) this.#indebted.delete(endpointId)
  }

  /** One more that the worker has: it was not settled after all, or was fetched. */
  unsettled(endpointId: string, token: number): void {
    const lane = this.#open.get(endpointId) ?? this.#indebted.get(endpointId)
    if (lane?.token !== token) return
    this.#use(lane, 1)
    lane.free--
  }

  #use(lane: L, more: number, large = 0): void {
    this.#lent -= lentTo(lane)
    lane.used += more
    lane.large = lane.used <= 0 ? 0 : (lane.large ?? 0) + large
    this.#lent += lentTo(lane)
  }

  #forget(endpointId: string): void {
    const lane = this.#open.get(endpointId) ?? this.#indebted.get(endpointId)
    if (lane === undefined) return
    this.#lent -= lentTo(lane)
    this.#open.delete(endpointId)
    this.#indebted.delete(endpointId)
  }
}

function placesOf({ used, large = 0 }: OpenLane): number {
  return used + large
}

function lentTo(lane: OpenLane): number {
  return Math.max(0, placesOf(lane) - OWN_PLACES)
}
