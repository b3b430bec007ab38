/** Turns an agent's acknowledgement into the result of an attempt. */
import { type AckFrame, type AckResult, MOST_RESPONSE_BYTES } from "../../core/relay-protocol.ts"
import { excerpt } from "../result.ts"
import type { TransportResult } from "../transport.ts"

export function acknowledged(ack: AckFrame): TransportResult {
  const { result, status, retryAfter, response } = ack
  const whole = response === null ? null : bytesOf(response)
  // A copy: posting a part to the store's thread would copy all of it.
  const body =
    whole !== null && whole.length > MOST_RESPONSE_BYTES ? whole.slice(0, MOST_RESPONSE_BYTES) : whole
  return {
    outcome: { kind: "ack", result, detail: detailOf(ack, body), retryAfterSeconds: retryAfter },
    responseStatus: status,
    responseBody: body,
    responseTruncated: (response?.truncated ?? false) || body !== whole,
    detail: null,
  }
}

const MEANINGS: { readonly [R in AckResult]: string } = {
  success: "",
  permanent: "the agent refused the event",
  transient: "the agent could not process the event",
}

/** As for an HTTP receiver: the status and the beginning of the response. Without a status, the agent's own words. */
function detailOf({ result, status, error }: AckFrame, body: Uint8Array | null): string {
  if (result === "success") return ""
  const text = error === null ? excerpt(body ?? new Uint8Array()) : excerpt(Buffer.from(error))
  const head = status === null ? "" : `HTTP ${status}`
  return [head, text].filter((part) => part !== "").join(": ") || MEANINGS[result]
}

function bytesOf({ body, base64 }: NonNullable<AckFrame["response"]>): Uint8Array {
  // Not a Buffer of Node's pool: posting a slice of it to the store's thread copies all of the pool.
  return new Uint8Array(base64 === undefined ? Buffer.from(body!) : Buffer.from(base64, "base64"))
}
