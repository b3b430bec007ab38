/** Routes of Svix's API that Posthorn does not have: answered with 501 and an alternative. */
import type { FastifyRequest } from "fastify"
import type { Api } from "./context.ts"
import { ApiError } from "./errors.ts"

interface Unsupported {
  readonly what: string
  readonly instead: string
  /** Prefixes; `*` is any name. */
  readonly paths: readonly string[]
}

const APP = "/api/v1/app/*"
const ENDPOINT = `${APP}/endpoint/*`
const MESSAGE = `${APP}/msg/*`
const AUTH = "/api/v1/auth"

const TABLE: readonly Unsupported[] = [
  {
    what: "transformations",
    instead: "send the payload as its receivers want it",
    paths: [`${ENDPOINT}/transformation`],
  },
  {
    what: "connectors and integrations",
    instead: "create an endpoint with the receiver's own URL",
    paths: ["/api/v1/connector", `${ENDPOINT}/connector`, `${APP}/integration`],
  },
  {
    what: "streams, sinks and destinations",
    instead: "create an endpoint, with ordered: true where the order matters",
    paths: ["/api/v1/stream", `${APP}/stream`, `${APP}/destination`].concat(
      ["stream", "stream-portal-access", "stream-logout"].map((one) => `${AUTH}/${one}`),
    ),
  },
  {
    what: "polling",
    instead: "list the application's messages, or create an endpoint",
    paths: ["poller", "polling-endpoint", "events"]
      .map((one) => `${APP}/${one}`)
      .concat(`${AUTH}/app/*/poller`),
  },
  {
    what: "Svix's API for ingestion",
    instead: "create a source, POST /app/{app_id}/source: a URL that takes webhooks in from a provider",
    paths: ["/ingest", `${APP}/inbound`],
  },
  {
    what: "the configuration of endpoints by somebody else's link",
    instead: "give away a key with the capability ManageEndpoint, from POST /auth/app-portal-access",
    paths: [`${APP}/auto-config`, `${APP}/autoconfig`, `${ENDPOINT}/auto-config`],
  },
  {
    what: "a resource for OAuth, client certificates or authorities",
    instead: "set auth and tls of the endpoint itself",
    paths: ["oauth", "oauth-config", "mtls", "mtls-config", "ca"].map((one) => `${ENDPOINT}/${one}`),
  },
  {
    what: "tokens of this kind",
    instead: "make a key with POST /key",
    paths: [
      "org-group-admin-token",
      "app/*/mcp-token",
      "app/*/create-message-token",
      "dashboard",
      "one-time-token",
    ].map((one) => `${AUTH}/${one}`),
  },
  {
    what: "the management of organizations and their settings",
    instead: "make keys with POST /key; the rest is the server's configuration",
    paths: ["/api/v1/management", "/api/v1/environment/settings"],
  },
  {
    what: "one message for every application",
    instead: "send it to each of those that GET /app lists",
    paths: ["/api/v1/msg/broadcast"],
  },
  {
    what: "a search in the content of messages",
    instead: "list them by event type, channel, tag or time",
    paths: [`${APP}/msg/search`],
  },
  {
    what: "this view of a message or an attempt",
    instead: "get the message or the attempt itself",
    paths: [`${MESSAGE}/raw`, `${MESSAGE}/attempt/*/headers`],
  },
  {
    what: "a test attempt",
    instead: "use send-example of the endpoint",
    paths: [`${ENDPOINT}/msg/test-attempt`],
  },
  {
    what: "this figure",
    instead: "use the stats of the endpoint, GET /lane or GET /dead-letter/group",
    paths: [
      `${APP}/stats/attempts`,
      "/api/v1/stats/app/*/attempt",
      `${APP}/attempt/endpoint/*/count`,
      `${ENDPOINT}/rate-limit-status`,
    ],
  },
  {
    what: "mail to an application",
    instead: "create an operational webhook",
    paths: [`${APP}/alert-email`],
  },
  {
    what: "a retry schedule for an event type",
    instead: "set retry of the endpoint, or maxAttempts of the message",
    paths: ["/api/v1/event-type/*/retry-schedule"],
  },
  {
    what: "an export of event types as OpenAPI",
    instead: "use POST /environment/export",
    paths: ["/api/v1/event-type/export/openapi"],
  },
]

let patterns: (readonly [RegExp, Unsupported])[] | null = null

/** Null for other unknown routes. Matched only when no route fits, so that the start stays fast. */
export function unsupported(request: FastifyRequest): Unsupported | null {
  if (!request.is404) return null
  patterns ??= TABLE.flatMap((one) => one.paths.map((path) => [patternOf(path), one] as const))
  const path = request.url.split("?", 1)[0]!
  return patterns.find(([pattern]) => pattern.test(path))?.[1] ?? null
}

/** After authentication. */
export function refuseUnsupported(app: Api): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const found = unsupported(request)
    if (found === null) return done()
    done(ApiError.of(501, "not_implemented", `Posthorn does not have ${found.what}: ${found.instead}`))
  })
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll("*", "[^/]+")}(/|$)`)
}
