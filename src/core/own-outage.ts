/**
 * Whether the network of this process is down, as a pure function from state and event to state. One receiver that is silent has an outage
 * of its own; when all are silent at once, it is our network.
 *
 *   normal ── an attempt without an answer ──▶ suspected ── silent for long, endpoints and hosts enough ──▶ outage
 *     ▲                                            │                                                          │
 *     └────────────── any answer, of any status ───┴──────────────────────── any answer, or a day later ──────┘
 */
import type { Outcome } from "./outcome.ts"

export interface OutageSettings {
  /** How long no endpoint may answer. */
  readonly silenceMs: number
  /** How many endpoints, and on how many hosts, must have been tried meanwhile. */
  readonly endpoints: number
  readonly hosts: number
}

export const OUTAGE_DEFAULTS: OutageSettings = { silenceMs: 15_000, endpoints: 10, hosts: 3 }

/** An attempt without an answer is evidence for this long: dead endpoints that are tried now and then never add up. */
const EVIDENCE_MS = 60_000
/** Endpoints of one application alone are evidence only if no other application had an answer for this long. */
const OTHER_APPLICATION_MS = 3_600_000
/** After this time attempts are counted again, so that deliveries to endpoints that are gone for good do end. */
export const LONGEST_OUTAGE_MS = 86_400_000

/** The last answer, and the last one of any other application than that one. */
export interface LastAnswers {
  readonly at: number
  readonly appId: string | null
  readonly otherAt: number
}

export interface SilentEndpoint {
  readonly id: string
  readonly appId: string
  readonly host: string
  readonly at: number
}

interface Answered {
  readonly answers: LastAnswers
}

export type OutageState =
  /** `since`: the last answer, or the end of an outage without one. A silence begins after it. */
  | (Answered & { readonly phase: "normal"; readonly since: number })
  /** `tried`: endpoints without an answer since then. As many as it takes to decide, and no more. */
  | (Answered & {
      readonly phase: "suspected"
      readonly since: number
      readonly tried: readonly SilentEndpoint[]
    })
  | (Answered & { readonly phase: "outage"; readonly since: number; readonly declaredAt: number })

export type OutageEvent =
  | { readonly kind: "answered"; readonly appId: string }
  | {
      readonly kind: "unanswered"
      readonly endpointId: string
      readonly appId: string
      readonly host: string
      readonly startedAt: number
      /** When the first attempt after the endpoint's last answer ended without one. */
      readonly unansweredSince: number
    }
  /** Time has passed. */
  | { readonly kind: "tick" }

export const NO_OUTAGE: OutageState = {
  phase: "normal",
  since: Number.NEGATIVE_INFINITY,
  answers: { at: Number.NEGATIVE_INFINITY, appId: null, otherAt: Number.NEGATIVE_INFINITY },
}

export type NetworkSign = "answered" | "unanswered"

/** The evidence of an attempt about our network; null: none. */
export function networkSignOf(outcome: Outcome, hasStatus: boolean): NetworkSign | null {
  if (outcome.kind === "response" || outcome.kind === "ack") return "answered"
  if (outcome.kind !== "failure") return null
  if (hasStatus) return "answered"
  switch (outcome.cause) {
    case "invalid_response":
    case "response_too_large":
      return "answered"
    case "dns_error":
    case "connection_refused":
    case "connection_reset":
    case "timeout":
    case "network_error":
      return "unanswered"
    case "tls_error":
    case "target_forbidden":
    case "auth_error":
      return null
    default:
      return outcome.cause satisfies never
  }
}

export function learnOutage(
  state: OutageState,
  event: OutageEvent,
  now: number,
  settings: OutageSettings,
): OutageState {
  switch (event.kind) {
    case "answered":
      return { phase: "normal", since: now, answers: answersAfter(state.answers, event.appId, now) }
    case "unanswered":
      return decided(suspect(state, event, now, settings), now, settings)
    case "tick":
      return decided(state, now, settings)
    default:
      return event satisfies never
  }
}

function answersAfter({ at, appId, otherAt }: LastAnswers, answering: string, now: number): LastAnswers {
  return { at: now, appId: answering, otherAt: appId === answering ? otherAt : at }
}

function suspect(
  state: OutageState,
  { endpointId: id, appId, host, startedAt, unansweredSince }: Extract<OutageEvent, { kind: "unanswered" }>,
  now: number,
  settings: OutageSettings,
): OutageState {
  if (state.phase === "outage") return state
  const recent = state.phase === "suspected" ? state.tried.filter((one) => isRecent(one, now)) : []
  const since = recent.length > 0 ? state.since : Math.max(state.since, startedAt)
  const others = recent.filter((one) => one.id !== id)
  const isKnown = others.length < recent.length
  // An endpoint that was silent before this silence began is down by itself.
  const adds = isKnown || (unansweredSince >= since && isNeeded(others, { appId, host }, settings))
  const tried = adds ? [...others, { id, appId, host, at: now }] : recent
  if (tried.length === 0) return { phase: "normal", since: state.since, answers: state.answers }
  return { phase: "suspected", since, tried, answers: state.answers }
}

const isRecent = ({ at }: SilentEndpoint, now: number) => now - at <= EVIDENCE_MS

/** Two applications decide as well as a thousand: so the list stays short, however many endpoints are silent. */
function isNeeded(
  tried: readonly SilentEndpoint[],
  { appId, host }: Pick<SilentEndpoint, "appId" | "host">,
  settings: OutageSettings,
): boolean {
  if (tried.length < settings.endpoints) return true
  const hosts = new Set(tried.map((one) => one.host))
  if (hosts.size < settings.hosts && !hosts.has(host)) return true
  return tried.every((one) => one.appId === tried[0]!.appId) && appId !== tried[0]!.appId
}

function decided(state: OutageState, now: number, settings: OutageSettings): OutageState {
  const { phase, since, answers } = state
  switch (phase) {
    case "normal":
      return state
    case "suspected": {
      const at = outageAt(state, now, settings)
      return at === null || now < at ? state : { phase: "outage", since, declaredAt: now, answers }
    }
    case "outage":
      return now - state.declaredAt < LONGEST_OUTAGE_MS ? state : { phase: "normal", since: now, answers }
    default:
      return phase satisfies never
  }
}

/** When the silence becomes an outage, unless an endpoint answers before; null while too few endpoints are silent. */
export function outageAt(state: OutageState, now: number, settings: OutageSettings): number | null {
  if (state.phase !== "suspected") return null
  const recent = state.tried.filter((one) => isRecent(one, now))
  if (recent.length < settings.endpoints) return null
  if (new Set(recent.map(({ host }) => host)).size < settings.hosts) return null
  const { appId } = recent[0]!
  const isOneApplication = recent.every((one) => one.appId === appId)
  if (isOneApplication && hasOtherAnswered(state.answers, appId, now)) return null
  return state.since + settings.silenceMs
}

function hasOtherAnswered({ at, appId, otherAt }: LastAnswers, than: string, now: number): boolean {
  return now - (appId === than ? otherAt : at) <= OTHER_APPLICATION_MS
}
