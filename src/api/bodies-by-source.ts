/** The bodies that are being read, by source: strangers who know URLs of sources must not take the room of all other requests. */

export interface Room {
  readonly bodies: number
  /** A chunked body counts as the largest that its source takes. */
  readonly bytes: number
}

interface Reading {
  bodies: number
  bytes: number
}

export class BodiesBySource {
  readonly #room: Room
  readonly #reading = new Map<string, Reading>()
  readonly #total: Reading = { bodies: 0, bytes: 0 }

  /** `room`: of all sources together. */
  constructor(room: Room) {
    this.#room = room
  }

  /**
   * False: the source has too many. Each may have as many as it leaves free: a single one takes half of the room, two take a third each,
   * and some is left for the next. One body of a source is always read, whatever its size.
   */
  begin(sourceId: string, bytes: number): boolean {
    const reading = this.#reading.get(sourceId) ?? { bodies: 0, bytes: 0 }
    const isFull =
      reading.bodies >= this.#room.bodies - this.#total.bodies ||
      reading.bytes + bytes > this.#room.bytes - this.#total.bytes
    if (reading.bodies > 0 && isFull) return false
    this.#reading.set(sourceId, reading)
    for (const one of [reading, this.#total]) {
      one.bodies++
      one.bytes += bytes
    }
    return true
  }

  end(sourceId: string, bytes: number): void {
    const reading = this.#reading.get(sourceId)!
    for (const one of [reading, this.#total]) {
      one.bodies--
      one.bytes -= bytes
    }
    if (reading.bodies === 0) this.#reading.delete(sourceId)
  }
}
