/** Channels: where notifications go. Their settings are sealed as a whole; `AlertChannel` is the form that is shown. */
import type { AlertChannelKind } from "../../core/alert-channel-kinds.ts"

/** `starttls` is required, not tried: a server that does not offer it gets no mail. `none`: not encrypted. */
export const MAIL_SECURITIES = ["tls", "starttls", "none"] as const
export type MailSecurity = (typeof MAIL_SECURITIES)[number]

interface Common {
  /** Whether the channel gets notices about dead letters beside alerts. True by default; false for `pagerduty`. */
  readonly deadLetters?: boolean
}

/** A POST with a JSON body, signed by Standard Webhooks with a secret of the channel's own. */
export interface WebhookChannelInput extends Common {
  readonly kind: "webhook"
  readonly url: string
}

export interface SlackChannelInput extends Common {
  readonly kind: "slack"
  /** Of an incoming webhook. It is a secret, and never shown again. */
  readonly url: string
}

export interface PagerDutyChannelInput extends Common {
  readonly kind: "pagerduty"
  /** Of an integration of the type "Events API v2". It is never shown again. */
  readonly routingKey: string
  /** `https://events.pagerduty.com/v2/enqueue` by default; accounts in the EU have another. */
  readonly url?: string
  /** Names this deployment in incidents; `posthorn` by default. */
  readonly source?: string
}

export interface MailChannelInput extends Common {
  readonly kind: "mail"
  /** The SMTP server. */
  readonly host: string
  /** 587 by default, 465 with `tls`, 25 with `none`. */
  readonly port?: number
  /** `tls` on port 465, else `starttls`. */
  readonly security?: MailSecurity
  readonly user?: string
  /** It is never shown again. */
  readonly password?: string
  /** Certificate authorities of the server, as PEM, instead of the public ones. */
  readonly ca?: string
  readonly from: string
  readonly to: readonly string[]
}

export type AlertChannelInput =
  | WebhookChannelInput
  | SlackChannelInput
  | PagerDutyChannelInput
  | MailChannelInput

/** Validated, with the defaults. */
export type WebhookSettings = Required<WebhookChannelInput>
export type SlackSettings = Required<SlackChannelInput>
export type PagerDutySettings = Required<PagerDutyChannelInput>
export interface MailSettings extends Required<Omit<MailChannelInput, "user" | "password" | "ca">> {
  readonly login: { readonly user: string; readonly password: string } | null
  readonly ca: string | null
}
export type ChannelSettings = WebhookSettings | SlackSettings | PagerDutySettings | MailSettings

/** A channel as it is shown: secrets are left out or cut. */
export interface AlertChannel {
  readonly name: string
  /** Null: an operator typed another text over the channel in the store. */
  readonly kind: AlertChannelKind | null
  readonly deadLetters: boolean
  /** Where notifications go, without secrets: `https://hooks.slack.com/…`, or `ops@example.com by smtp.example.com:587`. */
  readonly target: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export function targetOf(settings: ChannelSettings): string {
  switch (settings.kind) {
    case "webhook":
    case "slack":
    case "pagerduty":
      return `${new URL(settings.url).origin}/…`
    case "mail": {
      const { to, host, port } = settings
      return `${to.join(", ")} by ${host}:${port}`
    }
    default:
      return settings satisfies never
  }
}

/** Texts that must not appear in an error, a log line or a stored response. */
export function secretsOf(settings: ChannelSettings): readonly string[] {
  switch (settings.kind) {
    case "webhook":
    case "slack":
      return [settings.url, ...pathOf(settings.url), ...queryOf(settings.url)]
    case "pagerduty":
      return [settings.routingKey, ...queryOf(settings.url)]
    case "mail":
      return settings.login === null ? [] : [settings.login.password]
    default:
      return settings satisfies never
  }
}

/** A token is often in the path or in the query. */
function pathOf(url: string): readonly string[] {
  const { pathname, search } = new URL(url)
  return pathname === "/" ? [] : [pathname + search, pathname]
}

function queryOf(url: string): readonly string[] {
  const { search } = new URL(url)
  return search === "" ? [] : [search, search.slice(1)]
}
