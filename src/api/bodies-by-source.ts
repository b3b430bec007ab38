/** The bodies that are being read, by source: strangers who know one URL must not take the room of all other requests. */

/** Of one source. A chunked body counts as the largest that the source takes. */
const MOST_BODIES = 256
const MOST_BYTES = 16_777_216

interface Reading {
  bodies: number
  bytes: number
}

export class BodiesBySource {
  readonly #reading = new Map<string, Reading>()

  /** False: the source has too many. One body is always read, whatever its size. */
  begin(sourceId: string, bytes: number): boolean {
    const reading = this.#reading.get(sourceId) ?? { bodies: 0, bytes: 0 }
    const isFull = reading.bodies >= MOST_BODIES || reading.bytes + bytes > MOST_BYTES
    if (reading.bodies > 0 && isFull) return false
    reading.bodies++
    reading.bytes += bytes
    this.#reading.set(sourceId, reading)
    return true
  }

  end(sourceId: string, bytes: number): void {
    const reading = this.#reading.get(sourceId)!
    reading.bodies--
    reading.bytes -= bytes
    if (reading.bodies === 0) this.#reading.delete(sourceId)
  }
}
