/** Reads the lanes with live deliveries from the store: all of them, or the page after the last one. */
import type { Moment } from "../core/clock.ts"
import type { LaneWake, Store } from "../store/store.ts"

const PAGE = 500

export class Pages {
  readonly #store: Pick<Store, "scanLanes">
  #cursor: string | null = null

  constructor(store: Pick<Store, "scanLanes">) {
    this.#store = store
  }

  async read(
    whole: boolean,
    at: Moment | undefined,
    found: (lanes: readonly LaneWake[]) => void | Promise<void>,
  ): Promise<void> {
    if (whole) this.#cursor = null
    do {
      const lanes = await this.#store.scanLanes(this.#cursor, PAGE, at)
      if (lanes.length > 0) await found(lanes)
      this.#cursor = lanes.length < PAGE ? null : lanes.at(-1)!.endpointId
    } while (whole && this.#cursor !== null)
  }
}
