/** What became of a notification that was sent directly, as a sentence for an operator: delivered, or the problem and its remedy. */

import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import type { AttemptOutcome } from "../../core/outcome.ts"
import type { TransportResult } from "../../transport/transport.ts"
import type { ChannelSettings } from "./channel.ts"

export interface NotificationResult {
  readonly delivered: boolean
  readonly detail: string
}

const SERVICES: { readonly [K in AlertChannelKind]: string } = {
  webhook: "The receiver",
  slack: "Slack",
  pagerduty: "PagerDuty",
  mail: "The SMTP server",
}

export function explain(settings: ChannelSettings, { outcome, detail }: TransportResult): NotificationResult {
  switch (outcome.kind) {
    case "response":
      return responded(settings, outcome)
    case "ack":
      return replied(outcome)
    case "failure":
      return { delivered: false, detail: failed(settings, outcome.cause, detail) }
    case "interrupted":
      return { delivered: false, detail: "This process is stopping; nothing was sent." }
    default:
      return outcome satisfies never
  }
}

type Response = Extract<AttemptOutcome, { kind: "response" }>

function responded({ kind }: ChannelSettings, { status, excerpt }: Response): NotificationResult {
  const service = SERVICES[kind]
  if (status >= 200 && status < 300) return { delivered: true, detail: `${service} accepted it (${status}).` }
  const answer = `${service} answered ${status}${excerpt === "" ? "" : ` (${excerpt})`}`
  return { delivered: false, detail: `${answer}: ${remedy(kind, status)}.` }
}

function remedy(kind: AlertChannelKind, status: number): string {
  if (status === 429) return "it limits how often it takes notifications; try again later"
  if (status >= 500) return "it has a problem of its own; try again later"
  if (status >= 300 && status < 400) return "redirects are not followed; put the channel with the new URL"
  if (kind === "slack") return "make a new incoming webhook in Slack and put the channel with its URL"
  if (kind === "pagerduty") return "put the channel with the key of an Events API v2 integration"
  return "correct the receiver, or put the channel with another URL"
}

function replied({ result, detail }: Extract<AttemptOutcome, { kind: "ack" }>): NotificationResult {
  if (result === "success") return { delivered: true, detail: `The SMTP server accepted it (${detail}).` }
  const code = Number(/^\d{3}/.exec(detail)?.[0] ?? 0)
  const advice =
    result === "transient"
      ? "it refuses it for now; alerts are retried, try again in a few minutes"
      : code === 535 || code === 534
        ? "put the channel with the right user and password"
        : "correct the addresses, or what this sender may send"
  return { delivered: false, detail: `The SMTP server answered ${detail}: ${advice}.` }
}

function failed(
  settings: ChannelSettings,
  cause: Extract<AttemptOutcome, { kind: "failure" }>["cause"],
  detail: string | null,
): string {
  const place = placeOf(settings)
  const because = detail === null ? "" : ` (${detail})`
  switch (cause) {
    case "target_forbidden":
      return `The egress guard refuses ${place}: open its address with egress.allow or POSTHORN_EGRESS_ALLOW, or put the channel with another URL.`
    case "dns_error":
      return `${place} cannot be reached${because}: its name does not resolve; correct it, or check the name servers.`
    case "tls_error":
      return `${place} has no certificate that can be trusted${because}: ${settings.kind === "mail" ? "correct the host, the port and security, or give its authority as ca" : "correct the URL or the certificate"}.`
    case "connection_refused":
    case "connection_reset":
    case "timeout":
    case "network_error":
      return `${place} cannot be reached${because}: check its address and port, and the firewalls on the way.`
    case "auth_error":
      return `${place} takes no password${because}: correct user, password and security.`
    case "response_too_large":
    case "invalid_response":
      return `${place} does not speak ${settings.kind === "mail" ? "SMTP" : "HTTP"}${because}: check its address and port.`
    default:
      return cause satisfies never
  }
}

function placeOf(settings: ChannelSettings): string {
  return settings.kind === "mail" ? `${settings.host}:${settings.port}` : new URL(settings.url).host
}
