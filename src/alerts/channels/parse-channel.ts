/** Validates the settings of a channel. Every error names the field. */
import { ALERT_CHANNEL_KINDS, type AlertChannelKind } from "../../core/alert-channel-kinds.ts"
import { requireAuthorities } from "../../core/auth.ts"
import { invalid } from "../../core/errors.ts"
import {
  type Check,
  optionalUid,
  refuseUnknown,
  requireBoolean,
  requireName,
  requireObject,
  requireOneOf,
  requireText,
  requireUrl,
  wholeNumber,
} from "../../core/input.ts"
import {
  type AlertChannelInput,
  type ChannelSettings,
  MAIL_SECURITIES,
  type MailSecurity,
  type MailSettings,
} from "./channel.ts"

export const PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
const LONGEST_NAME = 64
const MOST_RECIPIENTS = 50
const PORTS: { readonly [S in MailSecurity]: number } = { tls: 465, starttls: 587, none: 25 }

type Fields = { readonly [field: string]: unknown }

/** Part of an endpoint's uid and URL. */
export function requireChannelName(value: unknown, field = "name"): string {
  const name = requireName(value, field, LONGEST_NAME)
  optionalUid(name, field, "ep")
  return name
}

/** Whether requests may go to its URL is for the egress guard to say. */
export function parseChannel(input: AlertChannelInput): ChannelSettings {
  requireObject(input, "channel")
  const fields = input as unknown as Fields
  const kind = requireOneOf(fields.kind, "kind", ALERT_CHANNEL_KINDS)
  return PARSERS[kind](fields)
}

const PARSERS: { readonly [K in AlertChannelKind]: (fields: Fields) => ChannelSettings } = {
  webhook(fields) {
    refuseUnknown(fields, ["kind", "url", "deadLetters"], "")
    return { kind: "webhook", url: required(fields, "url", webUrl), deadLetters: deadLetters(fields, true) }
  },
  slack(fields) {
    refuseUnknown(fields, ["kind", "url", "deadLetters"], "")
    return { kind: "slack", url: required(fields, "url", webUrl), deadLetters: deadLetters(fields, true) }
  },
  pagerduty(fields) {
    refuseUnknown(fields, ["kind", "routingKey", "url", "source", "deadLetters"], "")
    return {
      kind: "pagerduty",
      routingKey: required(fields, "routingKey", requireRoutingKey),
      url: webUrl(fields.url ?? PAGERDUTY_URL, "url"),
      source: requireLine(fields.source ?? "posthorn", "source"),
      // A notice has no end that would resolve its incident.
      deadLetters: deadLetters(fields, false),
    }
  },
  mail: parseMail,
}

function parseMail(fields: Fields): MailSettings {
  const known = ["host", "port", "security", "user", "password", "ca", "from", "to", "deadLetters"]
  refuseUnknown(fields, ["kind", ...known], "")
  const given = fields.security ?? (fields.port === PORTS.tls ? "tls" : "starttls")
  const security = requireOneOf(given, "security", MAIL_SECURITIES)
  return {
    kind: "mail",
    host: required(fields, "host", requireHost),
    port: wholeNumber(fields.port ?? PORTS[security], "port", 1, 65_535),
    security,
    login: parseLogin(fields, security),
    ca: fields.ca === undefined ? null : requireAuthorities(fields.ca, "ca"),
    from: required(fields, "from", requireAddress),
    to: required(fields, "to", requireRecipients),
    deadLetters: deadLetters(fields, true),
  }
}

function parseLogin({ user, password }: Fields, security: MailSecurity): MailSettings["login"] {
  if (user === undefined && password === undefined) return null
  if (user === undefined) throw invalid("user", "is required with a password")
  if (password === undefined) throw invalid("password", "is required with a user")
  if (security === "none")
    throw invalid("security", "must be tls or starttls: a password is not sent without encryption")
  const login = { user: requireLine(user, "user"), password: requireText(password, "password", 1024) }
  if (login.password === "") throw invalid("password", "must not be empty")
  return login
}

function required<T>(fields: Fields, field: string, check: Check<T>): T {
  if (fields[field] === undefined || fields[field] === null) throw invalid(field, "is required")
  return check(fields[field], field)
}

function deadLetters(fields: Fields, fallback: boolean): boolean {
  return requireBoolean(fields.deadLetters ?? fallback, "deadLetters")
}

const webUrl: Check<string> = (value, field) => requireUrl(value, ["http:", "https:"], field)

const requireRoutingKey: Check<string> = (value, field) => {
  if (typeof value !== "string" || !/^[A-Za-z0-9]{32}$/.test(value))
    throw invalid(field, "must be the 32 letters and digits of an Events API v2 integration")
  return value
}

/** One line of 1 to 255 characters. */
const requireLine: Check<string> = (value, field) => {
  const text = requireText(value, field, 255)
  if (text.trim() === "" || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text))
    throw invalid(field, "must be one line of text without control characters")
  return text
}

const HOST = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*$/i

const isIPv6 = (text: string) => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]`)

const requireHost: Check<string> = (value, field) => {
  if (typeof value !== "string" || !(HOST.test(value) || isIPv6(value)))
    throw invalid(field, "must be the name or the address of an SMTP server, such as smtp.example.com")
  return value
}

/** `ops@example.com`: ASCII and no quotes, comments or display names, so that nothing can be smuggled into a header or a command. */
const ADDRESS =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

const requireAddress: Check<string> = (value, field) => {
  if (typeof value !== "string" || value.length > 254 || !ADDRESS.test(value))
    throw invalid(field, "must be a mail address such as ops@example.com, without a name")
  return value
}

const requireRecipients: Check<readonly string[]> = (value, field) => {
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_RECIPIENTS)
    throw invalid(field, `must be a list of 1 to ${MOST_RECIPIENTS} mail addresses`)
  return [...new Set(value.map((one, i) => requireAddress(one, `${field}[${i}]`)))]
}
