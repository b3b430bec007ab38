/** The headers of a forwarded webhook: those that came, without those of the connection that they came over. */
import { HEADER_NAME, NOT_IN_A_HEADER } from "../core/header.ts"
import type { AgentEvent } from "./event.ts"

const REPLACED = new Set(
  (
    "host content-length connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer " +
    "transfer-encoding upgrade expect posthorn-message-id posthorn-delivery-id posthorn-attempt"
  ).split(" "),
)

/** For these a request without a body says nothing about its length. */
const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"])

/** Name, value, name, value …, as `node:http` writes them without a change. */
export function forwardedHeaders(event: AgentEvent, host: string): string[] {
  const { headers, method, body, traceparent } = event
  const named = headers
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) =>
      value
        .toLowerCase()
        .split(",")
        .map((name) => name.trim()),
    )
  const dropped = new Set([...REPLACED, ...named, ...(traceparent === null ? [] : ["traceparent"])])
  const kept = headers.filter(
    ([name, value]) =>
      !dropped.has(name.toLowerCase()) && HEADER_NAME.test(name) && !NOT_IN_A_HEADER.test(value),
  )
  const hasLength = body.length > 0 || !BODILESS.has(method.toUpperCase())
  return [
    ["host", host],
    ...kept,
    ["posthorn-message-id", event.messageId],
    ["posthorn-delivery-id", event.deliveryId],
    ["posthorn-attempt", String(event.attempt)],
    ...(traceparent === null ? [] : [["traceparent", traceparent]]),
    ...(hasLength ? [["content-length", String(body.length)]] : []),
    ["connection", "close"],
  ].flat()
}
