/**
 * The state machine of a lane run. `decide` chooses the next action; the other functions update the supply after an event. All are pure:
 * `LaneRun` has the effects.
 *
 *              ┌──────────── handed, woken, due ───────────┐
 *              ▼                                           │
 *   working ──────── nothing in hand, lane open ──────▶ resting
 *      │                                                   │
 *      └── gives way, stopping, nothing to do ──▶ closing ◀┘ rested
 *                                                   │ the session has closed
 *                                                   ▼
 *                                                leaving ── nothing in hand ──▶ ended
 */

/** How long an open lane stays open with nothing to do. Messages accepted meanwhile are sent without a fetch. */
export const REST_MS = 10_000

export type LeaveReason =
  | "nothing to do"
  | "rested"
  | "too many rest"
  | "gives way"
  | "stopping"
  | "outcome lost"
  | "unreachable"

export type Phase =
  | { readonly kind: "working" }
  | { readonly kind: "resting"; readonly since: number }
  /** The session is being closed. Deliveries in hand go on. */
  | { readonly kind: "closing"; readonly why: LeaveReason }
  /** The session has closed. Deliveries in hand go on; nothing is added. */
  | { readonly kind: "leaving"; readonly why: LeaveReason }
  | { readonly kind: "ended" }

/** What the run knows about further deliveries in the store, and when the next one comes due. */
export type Supply = SupplyKnown | Fetching

export interface SupplyKnown {
  /** `overtaking`: a stored delivery should start before those in hand: it came due, or has a higher priority. */
  readonly kind: "dry" | "more" | "overtaking"
  readonly until: number | null
}

interface Fetching {
  readonly kind: "fetching"
  /** The least supply after the fetch: the lane was woken meanwhile. */
  readonly then: SupplyKnown["kind"]
  /** The fetched deliveries go back: the endpoint changed after the fetch began. */
  readonly recalled: boolean
  readonly until: number | null
}

export interface LaneFacts {
  readonly queued: number
  /** Places taken by queued deliveries, and the limit up to which overtaking deliveries are fetched. */
  readonly queuedPlaces: number
  readonly mostPlaces: number
  readonly sending: number
  /** Outcomes and given-back deliveries that are not written yet. */
  readonly unsettled: number
  /** The prefetch limit. */
  readonly ahead: number
  readonly ordered: boolean
  readonly isOpen: boolean
  readonly mayRest: boolean
  readonly stopping: boolean
}

export type Action =
  | { readonly do: "fetch" }
  | { readonly do: "work" }
  | { readonly do: "rest" }
  | { readonly do: "close"; readonly why: LeaveReason }
  | { readonly do: "end" }
  | { readonly do: "wait"; readonly until: number | null }

export function decide(phase: Phase, supply: Supply, facts: LaneFacts, now: number): Action {
  switch (phase.kind) {
    case "working":
      if (facts.stopping) return { do: "close", why: "stopping" }
      if (wantsFetch(supply, facts)) return { do: "fetch" }
      if (!isIdle(supply, facts)) return { do: "wait", until: dueAfter(supply) }
      if (!facts.isOpen) return { do: "close", why: "nothing to do" }
      return facts.mayRest ? { do: "rest" } : { do: "close", why: "too many rest" }
    case "resting": {
      if (facts.stopping) return { do: "close", why: "stopping" }
      if (wantsFetch(supply, facts) || !isIdle(supply, facts)) return { do: "work" }
      const restedAt = phase.since + REST_MS
      if (now >= restedAt) return { do: "close", why: "rested" }
      return { do: "wait", until: Math.min(restedAt, dueAfter(supply) ?? restedAt) }
    }
    case "closing":
      return { do: "wait", until: null }
    case "leaving":
      return isIdle(supply, facts) ? { do: "end" } : { do: "wait", until: null }
    case "ended":
      return { do: "wait", until: null }
    default:
      return phase satisfies never
  }
}

function wantsFetch(supply: Supply, facts: LaneFacts): boolean {
  if (supply.kind === "dry" || supply.kind === "fetching") return false
  // An ordered lane fetches its next delivery while the outcome of the one before is being written.
  if (facts.ordered) return facts.queued + facts.sending === 0
  if (facts.queued < facts.ahead) return true
  return supply.kind === "overtaking" && facts.queuedPlaces < facts.mostPlaces
}

function isIdle(supply: Supply, { queued, sending, unsettled }: LaneFacts): boolean {
  return queued + sending + unsettled === 0 && supply.kind !== "fetching"
}

function dueAfter(supply: Supply): number | null {
  return supply.kind === "fetching" ? null : supply.until
}

/** Deliveries may be due. A running fetch may have looked too early. */
export function woken(supply: Supply, overtaking = false): Supply {
  const kind = overtaking ? "overtaking" : "more"
  if (supply.kind === "fetching") return { ...supply, then: moreOf(supply.then, kind) }
  return { ...supply, kind: moreOf(supply.kind, kind) }
}

/** A delivery comes due at this time. */
export function dueAt<S extends Supply>(supply: S, at: number | null): S {
  return at === null ? supply : { ...supply, until: earlier(supply.until, at) }
}

/** The store has more deliveries that may start. */
export function withMore(supply: SupplyKnown): SupplyKnown {
  return { ...supply, kind: moreOf(supply.kind, "more") }
}

/** Turns a due time that has passed into supply. */
export function cameDue(supply: Supply, now: number): Supply {
  if (supply.kind === "fetching" || supply.until === null || supply.until > now) return supply
  return { kind: "overtaking", until: null }
}

/** The deliveries of a running fetch will be given back. */
export function recalled(supply: Supply): Supply {
  return supply.kind === "fetching" ? { ...supply, recalled: true } : supply
}

/** The gate closed until this time; null: until somebody changes the endpoint. */
export function heldUntil(supply: Supply, until: number | null): Supply {
  if (supply.kind === "fetching") return { ...supply, recalled: true, then: "dry", until }
  return { kind: "dry", until }
}

export function fetchStarted(): Supply {
  return { kind: "fetching", then: "dry", recalled: false, until: null }
}

/** The supply after a fetch; `beside`: the fetch was made for an overtaking delivery. */
export function foundBy(
  deliveries: number,
  nextDueAt: number | null,
  ordered: boolean,
  beside: boolean,
  now: number,
): SupplyKnown {
  // An ordered lane fetches again after each settle: its next delivery may be due by then.
  const isMoreDue = ordered || (nextDueAt !== null && nextDueAt <= now)
  if (deliveries === 0 || !isMoreDue) return { kind: "dry", until: nextDueAt }
  return { kind: beside ? "overtaking" : "more", until: null }
}

export function fetchEnded(supply: Supply, found: SupplyKnown): Supply {
  if (supply.kind !== "fetching") return supply
  if (supply.recalled) return { kind: supply.then, until: supply.until }
  return { kind: moreOf(supply.then, found.kind), until: earlier(supply.until, found.until) }
}

/** When the lane should be claimed again; null: nothing waits. */
export function nextClaimAt(supply: Supply, now: number): number | null {
  return supply.kind === "dry" ? supply.until : now
}

const RANKS = { dry: 0, more: 1, overtaking: 2 } as const

function moreOf(a: SupplyKnown["kind"], b: SupplyKnown["kind"]): SupplyKnown["kind"] {
  return RANKS[a] >= RANKS[b] ? a : b
}

function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
