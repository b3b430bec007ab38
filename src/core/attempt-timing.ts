/** How long the phases of an attempt took, and the text that stores keep of it. */

/** Whole milliseconds, one phase after the other. Null: the phase did not happen, or did not end. */
export interface AttemptTiming {
  /** Name resolution. 0 for an address, and for a name that was resolved a moment ago. */
  readonly dnsMs: number | null
  /** From the addresses to an open connection, through a proxy too. Null, like `dnsMs`, on a reused connection. */
  readonly connectMs: number | null
  /** The TLS handshake. */
  readonly tlsMs: number | null
  /** From the connection to the first byte of the response. */
  readonly firstByteMs: number | null
}

/** Four numbers with commas between them, empty for null; null without any phase. */
export function writeTiming({ dnsMs, connectMs, tlsMs, firstByteMs }: AttemptTiming): string | null {
  const text = `${dnsMs ?? ""},${connectMs ?? ""},${tlsMs ?? ""},${firstByteMs ?? ""}`
  return text === ",,," ? null : text
}

/** An operator may have typed any text into the store. */
export function readTiming(text: string | null): AttemptTiming | null {
  if (text === null || !/^(\d{0,9},){3}\d{0,9}$/.test(text)) return null
  const [dnsMs, connectMs, tlsMs, firstByteMs] = text.split(",").map((ms) => (ms === "" ? null : Number(ms)))
  return { dnsMs: dnsMs!, connectMs: connectMs!, tlsMs: tlsMs!, firstByteMs: firstByteMs! }
}
