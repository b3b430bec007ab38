/** Removes a channel's secrets from a result: a receiver or an error may repeat them, and results are stored and logged. */
import { type Bytes, bytesOfText, toBuffer } from "../../core/bytes.ts"
import type { TransportResult } from "../transport.ts"

export function withoutSecrets(result: TransportResult, secrets: readonly string[]): TransportResult {
  if (secrets.length === 0) return result
  const clean = (text: string) => secrets.reduce((kept, secret) => kept.replaceAll(secret, "…"), text)
  const { outcome, responseBody, detail } = result
  return {
    ...result,
    outcome: cleanOutcome(outcome, clean),
    responseBody: responseBody === null ? null : cleanBody(responseBody, clean),
    detail: detail === null ? null : clean(detail),
  }
}

function cleanOutcome(
  outcome: TransportResult["outcome"],
  clean: (text: string) => string,
): TransportResult["outcome"] {
  switch (outcome.kind) {
    case "response":
      return { ...outcome, excerpt: clean(outcome.excerpt) }
    case "ack":
      return { ...outcome, detail: clean(outcome.detail) }
    case "failure":
    case "interrupted":
      return outcome
    default:
      return outcome satisfies never
  }
}

/** A body that has no secret keeps its exact bytes. */
function cleanBody(body: Bytes, clean: (text: string) => string): Bytes {
  const text = toBuffer(body).toString("utf8")
  const cleaned = clean(text)
  return cleaned === text ? body : bytesOfText(cleaned)
}
