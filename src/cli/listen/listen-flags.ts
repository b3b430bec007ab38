/** The flags of `posthorn listen`, and what is made on the server for them. */
import type { Place } from "../../core/received-request.ts"
import { READY_SCHEMES, type ReadyScheme } from "../../core/verification-schemes.ts"
import { CONNECTION_FLAGS } from "../command.ts"
import { SOURCE_FIELDS } from "../commands/source-fields.ts"
import { choice, type Given, on, text, texts } from "../flag.ts"
import { UsageError } from "../usage-error.ts"

const { server, key, json } = CONNECTION_FLAGS
const { secret, "secret-file": secretFile, type } = SOURCE_FIELDS

export const LISTEN_FLAGS = {
  forward: text("URL", "the local program, such as http://localhost:3000"),
  app: text("APP", "listens in this application, by id or uid, instead of in a temporary one"),
  verify: choice(READY_SCHEMES, "accepts only what this provider has signed, with --secret-file (none)", {
    field: "verification",
  }),
  secret,
  "secret-file": secretFile,
  type: { ...type, about: "an event type, header:NAME or pointer:/PATH; the provider's place with --verify" },
  only: texts("TYPE", "forwards webhooks of this event type, and no others", { field: "eventTypes" }),
  print: on("prints each request with its headers and body, instead of the table"),
  server: { ...server, about: "the server (POSTHORN_SERVER)" },
  key: { ...key, about: "an admin's key (POSTHORN_API_KEY)" },
  json: { ...json, about: "one line of JSON for each webhook, for programs" },
} as const

export type ListenFlags = Given<typeof LISTEN_FLAGS>

/** Where providers say what kind of webhook it is. */
const TYPE_PLACES: { readonly [S in ReadyScheme]?: Place } = {
  github: { header: "x-github-event" },
  gitlab: { header: "x-gitlab-event" },
  shopify: { header: "x-shopify-topic" },
  slack: { pointer: "/event/type" },
  "standard-webhooks": { pointer: "/type" },
  stripe: { pointer: "/type" },
}

export interface Types {
  /** Of the source. */
  readonly eventType: unknown
  /** Of the endpoint; null is all. */
  readonly eventTypes: readonly string[] | null
}

/** In an application that others send to, the endpoint must not take their messages. */
export function typesFor(name: string, { app, verify, type: given, only }: ListenFlags): Types {
  const place = app === undefined && verify !== undefined ? TYPE_PLACES[verify] : undefined
  const eventType = given ?? place ?? (app === undefined ? "inbound" : `inbound.${name}`)
  if (typeof eventType === "string") {
    if (only === undefined) return { eventType, eventTypes: [eventType] }
    throw new UsageError(
      "--only needs the event type of each webhook: say where it is, with --type header:NAME or --type pointer:/PATH, or with --verify without --app",
    )
  }
  if (only !== undefined) return { eventType, eventTypes: only }
  if (app === undefined) return { eventType, eventTypes: null }
  throw new UsageError(
    "--type with --app needs --only: without it, everything that the application sends would come here",
  )
}

/** Patient with a program that is being written: a breakpoint holds a request for minutes. */
export const LISTEN_POLICY = {
  delays: [1, 2, 5, 10, 20],
  then: 30,
  maxAge: 3600,
  retryable: "transient",
  retryAfter: 60,
  timeout: 600,
  gone: false,
  breaker: false,
  budget: false,
  autoDisable: false,
  retention: { delivered: { after: 86_400 }, dead: { after: 86_400 } },
} as const
