/** What a delivery takes of a lane's hand: a place, and one more for every so many bytes, so that few large ones fill it. */
const PLACE_BYTES = 4096

export function placesOf(payloadBytes: number): number {
  return 1 + Math.floor(payloadBytes / PLACE_BYTES)
}
