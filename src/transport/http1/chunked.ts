/** Parses the framing of a chunked body. Strict: sizes are hexadecimal, lines end in CR LF. Extensions and trailers are skipped. */
import { TransportError } from "../error.ts"

const LARGEST_CHUNK = 0xffff_ffff
const [CR, LF, SEMICOLON, SPACE, TAB] = Buffer.from("\r\n; \t") as unknown as number[]

type State =
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

export class ChunkedFraming {
  #state: State = "size"
  #hasSize = false
  /** Bytes of the current chunk's data that are still to come. */
  dataLeft = 0

  get isOver(): boolean {
    return this.#state === "over"
  }

  /** Skips framing from `from` on. Returns where data begins, or `to`. */
  skip(bytes: Uint8Array, from: number, to: number): number {
    let at = from
    while (at < to && this.#state !== "data" && this.#state !== "over") this.#state = this.#next(bytes[at++]!)
    return at
  }

  took(count: number): void {
    this.dataLeft -= count
    if (this.dataLeft === 0) this.#state = "afterData"
  }

  #next(byte: number): State {
    switch (this.#state) {
      case "size":
        return this.#size(byte)
      case "extension":
        return byte === CR ? "endOfSize" : unlessLineFeed(byte, "extension")
      case "endOfSize":
        this.#hasSize = false
        return expected(byte, LF, this.dataLeft === 0 ? "trailers" : "data")
      case "afterData":
        return expected(byte, CR, "endOfData")
      case "endOfData":
        return expected(byte, LF, "size")
      case "trailers":
        return byte === CR ? "endOfAll" : unlessLineFeed(byte, "trailer")
      case "trailer":
        return byte === CR ? "endOfTrailer" : unlessLineFeed(byte, "trailer")
      case "endOfTrailer":
        return expected(byte, LF, "trailers")
      case "endOfAll":
        return expected(byte, LF, "over")
      case "data":
      case "over":
        return this.#state
    }
  }

  #size(byte: number): State {
    const digit = hexDigit(byte)
    if (digit !== -1) {
      this.#hasSize = true
      this.dataLeft = this.dataLeft * 16 + digit
      if (this.dataLeft > LARGEST_CHUNK) throw invalid("a chunk is larger than 4 GiB")
      return "size"
    }
    if (!this.#hasSize) throw invalid("a chunk has no hexadecimal size")
    if (byte === SEMICOLON || byte === SPACE || byte === TAB) return "extension"
    return expected(byte, CR, "endOfSize")
  }
}

function expected(byte: number, wanted: number | undefined, then: State): State {
  if (byte !== wanted) throw invalid("a chunk does not end at its size")
  return then
}

function unlessLineFeed(byte: number, then: State): State {
  if (byte === LF) throw invalid("a line of the chunked framing does not end in CR LF")
  return then
}

/** -1 if the byte is no hexadecimal digit. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

function invalid(detail: string): TransportError {
  return new TransportError("invalid_response", detail)
}
