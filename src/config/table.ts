/** All settings: flags, variables, the file's names, `posthorn config` and the help are made from this table. */
import { nearest } from "../core/nearest.ts"
import { printable } from "../core/text.ts"
import { LOG_LEVELS } from "../observe/log.ts"
import {
  address,
  type Kind,
  type ListenAddress,
  listenAddress,
  object,
  oneOf,
  origins,
  policy,
  ports,
  secret,
  secretObject,
  text,
  truth,
  truthOrObject,
  webAddress,
  wholeNumber,
  words,
} from "./kinds.ts"

export interface Setting<T = unknown> {
  readonly kind: Kind<T>
  /** The default. */
  readonly fallback: T | null
  readonly about: string
  /** Read after the variable that is made from its name. */
  readonly otherVariable?: string
  /** A flag that turns it off, instead of one with a value. */
  readonly off?: string
}

const setting = <T, F extends T | null>(
  kind: Kind<T>,
  fallback: F,
  about: string,
  more: Pick<Setting, "otherVariable" | "off"> = {},
) => ({ kind, fallback, about, ...more }) as Setting<T> & { readonly fallback: F }

const JWT_ALGORITHMS = ["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "EdDSA"] as const

/** The library checks most ranges. */
export const SETTINGS = {
  port: setting(wholeNumber(0, 65_535), 8071, "the port to listen on; 0 takes a free one", {
    otherVariable: "PORT",
  }),
  host: setting(text, "0.0.0.0", "the address to listen on"),
  publicUrl: setting(webAddress, null, "the server's URL for clients, used in the links that it returns"),
  store: setting(
    address,
    "sqlite:./data/posthorn.db",
    "sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/DATABASE",
  ),
  schedule: setting(address, null, "redis://HOST:PORT as the delay queue of a store on PostgreSQL"),
  schema: setting(text, null, "the PostgreSQL schema of the tables: where they are, else posthorn"),
  encryptionKey: setting(
    secret,
    null,
    "32 bytes as hex or base64, for the endpoints' secrets; else made at first use",
  ),
  apiKey: setting(
    secret,
    null,
    "the first admin key, instead of one that is made: ph_… or 24 characters and more",
  ),
  jwtSecret: setting(
    secret,
    null,
    "accepts Svix's tokens that were signed with it: at least 32 bytes, or a public key for RS… and EdDSA",
  ),
  jwtAlgorithm: setting(oneOf(JWT_ALGORITHMS), "HS256", "how those tokens are signed"),
  deliver: setting(truth, true, "whether this process delivers; if not, workers beside it do", {
    off: "no-deliver",
  }),
  retry: setting(
    policy,
    "standard",
    "the retry policy of endpoints that have none: a preset's name, or a policy as JSON",
  ),
  concurrency: setting(wholeNumber(), 32, "the most requests in flight to an endpoint without its own limit"),
  maxInFlight: setting(wholeNumber(), 2048, "the most requests in flight in this process"),
  ownOutage: setting(
    truthOrObject,
    true,
    "notice that this process's network is down, and count no attempt then; silenceMs, endpoints and hosts as JSON",
  ),
  cost: setting(
    object,
    null,
    "prices for posthorn cost, as JSON: perThousandAttempts, perGigabyteOut, perSlotHour, currency",
  ),
  maxPerPoll: setting(wholeNumber(), null, "the most deliveries that start between two polls"),
  maxPayloadBytes: setting(wholeNumber(), 1_048_576, "the largest payload that is accepted"),
  maxRequests: setting(
    wholeNumber(1, 100_000),
    1000,
    "the most API requests in flight; further requests get 503 with Retry-After",
  ),
  pollIntervalMs: setting(
    wholeNumber(),
    5000,
    "how often the store is searched for due lanes that no wake announced",
  ),
  maintenanceIntervalMs: setting(wholeNumber(), 3_600_000, "how often retention runs"),
  closeTimeoutMs: setting(wholeNumber(), 10_000, "how long a stop waits for requests in flight"),
  sendTraceparent: setting(truth, false, "whether receivers get the header traceparent of a message's trace"),
  metrics: setting(
    listenAddress,
    { host: "127.0.0.1", port: 9464 } as ListenAddress,
    "where /metrics and /healthz are answered, as HOST:PORT, or off",
  ),
  alerts: setting(
    secretObject,
    null,
    "an object, applied to the store at each start: channels, rules and settings, see docs/alerts.md",
  ),
  logLevel: setting(oneOf(LOG_LEVELS), "warn", `${LOG_LEVELS.join(", ")}`),
  "portal.frameAncestors": setting(
    origins,
    null,
    "origins whose pages may show the customers' portal in a frame",
  ),
  "egress.allow": setting(words, null, "ranges that webhooks may go to beside public addresses, as CIDRs"),
  "egress.ports": setting(ports, null, "default refuses well-known services, any none, a list all others"),
  "egress.http": setting(truth, null, "whether http:// is allowed beside https:// (true)"),
  "egress.proxy": setting(address, null, "http://HOST:PORT of a proxy that every webhook goes through"),
  "egress.dns": setting(words, null, "name servers, as ADDRESS or ADDRESS:PORT"),
} as const

export type SettingName = keyof typeof SETTINGS
export const NAMES = Object.keys(SETTINGS) as SettingName[]

export type Settings = {
  readonly [N in SettingName]: (typeof SETTINGS)[N] extends Setting<infer T> & { readonly fallback: infer F }
    ? F extends null
      ? T | null
      : T
    : never
}

/** With its type erased, for loops over all settings. */
export const settingOf = (name: SettingName): Setting => SETTINGS[name] as Setting

/** Null for secrets: every user of the machine can read command lines. */
export function flagOf(name: SettingName): string | null {
  if (settingOf(name).kind.isSecret) return null
  return (
    settingOf(name).off ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replace(".", "-")
  )
}

export function variablesOf(name: SettingName): readonly string[] {
  const own = name.replace(/[A-Z]/g, (letter) => `_${letter}`).replace(".", "_")
  const { otherVariable } = settingOf(name)
  return [`POSTHORN_${own.toUpperCase()}`, ...(otherVariable === undefined ? [] : [otherVariable])]
}

const PREFIX = "POSTHORN_"

/** Variables that are not settings. */
const OTHER_VARIABLES = ["POSTHORN_CONFIG", "POSTHORN_SERVER"]

/** Kubernetes sets these in every container for a service named posthorn. */
const SERVICE_LINK = /^POSTHORN_(SERVICE_|PORT_\d)/

/** A warning for each unknown variable that begins with the prefix, or resembles a variable that does. */
export function unknownVariables(
  environment: { readonly [name: string]: string | undefined },
  prefix = PREFIX,
): string[] {
  const known = [...NAMES.flatMap(variablesOf), ...OTHER_VARIABLES]
  // Without the prefix, which would make all names similar.
  const words = known.map((name) => name.replace(PREFIX, ""))
  return Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name) && !SERVICE_LINK.test(name))
    .sort()
    .map((name) => ({ name, meant: nearest(name.slice(PREFIX.length), words) }))
    .filter(({ name, meant }) => name.startsWith(prefix) || `${PREFIX}${meant}`.startsWith(prefix))
    .map(({ name, meant }) => {
      const hint = meant === null ? "posthorn config lists the settings" : `did you mean ${PREFIX}${meant}?`
      return `the variable ${printable(name)} is unknown and has no effect; ${hint}`
    })
}
