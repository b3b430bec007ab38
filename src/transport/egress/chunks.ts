/** The frame of a body that comes in chunks. Strict: sizes in hexadecimal, lines that end in CR LF; extensions and trailers are passed over. */
import { EgressError } from "./guard.ts"

const LARGEST_CHUNK = 0xffff_ffff
const [CR, LF, SEMICOLON, SPACE, TAB] = Buffer.from("\r\n; \t") as unknown as number[]

type Place =
  | "size"
  | "extension"
  | "endOfSize"
  | "data"
  | "afterData"
  | "endOfData"
  | "trailers"
  | "trailer"
  | "endOfTrailer"
  | "endOfAll"
  | "over"

export class Chunks {
  #place: Place = "size"
  #hasSize = false
  /** How many bytes of the body come next. */
  left = 0

  get isOver(): boolean {
    return this.#place === "over"
  }

  /** Up to where the body goes on, or to the end of what came. */
  skipFrame(bytes: Uint8Array, from: number, to: number): number {
    let at = from
    while (at < to && this.#place !== "data" && this.#place !== "over") this.#place = this.#next(bytes[at++]!)
    return at
  }

  took(count: number): void {
    this.left -= count
    if (this.left === 0) this.#place = "afterData"
  }

  #next(byte: number): Place {
    switch (this.#place) {
      case "size":
        return this.#size(byte)
      case "extension":
        return byte === CR ? "endOfSize" : besidesLineFeed(byte, "extension")
      case "endOfSize":
        this.#hasSize = false
        return expected(byte, LF, this.left === 0 ? "trailers" : "data")
      case "afterData":
        return expected(byte, CR, "endOfData")
      case "endOfData":
        return expected(byte, LF, "size")
      case "trailers":
        return byte === CR ? "endOfAll" : besidesLineFeed(byte, "trailer")
      case "trailer":
        return byte === CR ? "endOfTrailer" : besidesLineFeed(byte, "trailer")
      case "endOfTrailer":
        return expected(byte, LF, "trailers")
      case "endOfAll":
        return expected(byte, LF, "over")
      case "data":
      case "over":
        return this.#place
    }
  }

  #size(byte: number): Place {
    const digit = hexDigit(byte)
    if (digit !== -1) {
      this.#hasSize = true
      this.left = this.left * 16 + digit
      if (this.left > LARGEST_CHUNK) throw invalid("a chunk's size is beyond all measure")
      return "size"
    }
    if (!this.#hasSize) throw invalid("a chunk's size is no number")
    if (byte === SEMICOLON || byte === SPACE || byte === TAB) return "extension"
    return expected(byte, CR, "endOfSize")
  }
}

function expected(byte: number, wanted: number | undefined, then: Place): Place {
  if (byte !== wanted) throw invalid("a chunk does not end where it should")
  return then
}

function besidesLineFeed(byte: number, then: Place): Place {
  if (byte === LF) throw invalid("a line of the body's frame ends too soon")
  return then
}

/** -1 for what is none. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

function invalid(detail: string): EgressError {
  return new EgressError("invalid_response", detail)
}
