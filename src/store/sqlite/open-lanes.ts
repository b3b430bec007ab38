/** Open lanes on the store's thread. A change that could make a handoff wrong closes the lane, and its session fetches again. */
import { LentPlaces, OpenLane, type OpenLaneInput } from "../open-lane.ts"

export interface Handoff {
  readonly token: number
  readonly starts: boolean
}

export class OpenLanes {
  readonly #pool = new LentPlaces()
  readonly #open = new Map<string, OpenLane>()
  /** Closed lanes whose sessions still have borrowed places. */
  readonly #indebted = new Map<string, OpenLane>()

  open(endpointId: string, input: OpenLaneInput): void {
    this.#find(endpointId)?.forget()
    this.#indebted.delete(endpointId)
    this.#open.set(endpointId, new OpenLane(this.#pool, input))
  }

  close(endpointId: string): void {
    const lane = this.#open.get(endpointId)
    if (lane === undefined) return
    this.#open.delete(endpointId)
    if (lane.lent > 0) this.#indebted.set(endpointId, lane)
  }

  closeIfToken(endpointId: string, token: number): void {
    if (this.#open.get(endpointId)?.token === token) this.close(endpointId)
  }

  closeAll(): void {
    for (const endpointId of this.#open.keys()) this.close(endpointId)
  }

  /** Null when the delivery has to be fetched: the lane is then closed, so that later deliveries do not overtake it. */
  take(endpointId: string, payloadBytes: number): Handoff | null {
    const lane = this.#open.get(endpointId)
    if (lane === undefined) return null
    if (lane.room > 0) return { token: lane.token, starts: lane.take(payloadBytes) }
    this.close(endpointId)
    return null
  }

  free(endpointId: string, token: number): void {
    const lane = this.#find(endpointId)
    if (lane?.token !== token) return
    lane.free()
    if (lane.lent === 0) this.#indebted.delete(endpointId)
  }

  #find(endpointId: string): OpenLane | undefined {
    return this.#open.get(endpointId) ?? this.#indebted.get(endpointId)
  }
}
