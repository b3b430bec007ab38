/**
 * The state machine of one worker's time with one lane. `decide` says what to do next; the functions beside it say what an event makes of the
 * supply. All are pure: `LaneRun` has the effects.
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

/** How long an open lane is kept with nothing to do: what is accepted meanwhile is sent without a fetch. */
export const REST_MS = 10_000

export type LeaveReason =
  | "nothing to do"
  | "rested"
  | "too many rest"
  | "gives way"
  | "stopping"
  | "outcome lost"

export type Phase =
  | { readonly kind: "working" }
  | { readonly kind: "resting"; readonly since: number }
  /** The session is being closed. Deliveries in hand go on. */
  | { readonly kind: "closing"; readonly why: LeaveReason }
  /** The session has closed. Deliveries in hand go on; nothing is added. */
  | { readonly kind: "leaving"; readonly why: LeaveReason }
  | { readonly kind: "ended" }

/** What the store may have for the lane beyond the deliveries in hand, and when more comes due. */
export type Supply = SupplyKnown | Fetching

export interface SupplyKnown {
  /** `overtaking`: something waits that does not wait for the deliveries in hand: it came due, or has a higher priority. */
  readonly kind: "dry" | "more" | "overtaking"
  readonly until: number | null
}

interface Fetching {
  readonly kind: "fetching"
  /** What the supply is at least when the fetch is done: the lane was woken meanwhile. */
  readonly then: SupplyKnown["kind"]
  /** The deliveries that come are to be given back: they were read before something changed. */
  readonly recalled: boolean
  readonly until: number | null
}

export interface Facts {
  readonly queued: number
  /** The places that the queued deliveries take, and how many may be taken before something that overtakes waits in the store. */
  readonly queuedPlaces: number
  readonly mostPlaces: number
  readonly sending: number
  /** Outcomes and unsent deliveries on their way into the store. */
  readonly unsettled: number
  /** How many deliveries are kept queued. */
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

export function decide(phase: Phase, supply: Supply, facts: Facts, now: number): Action {
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

function wantsFetch(supply: Supply, facts: Facts): boolean {
  if (supply.kind === "dry" || supply.kind === "fetching") return false
  // The next delivery of an ordered lane is fetched when the one before is on its way into the store.
  if (facts.ordered) return facts.queued + facts.sending === 0
  if (facts.queued < facts.ahead) return true
  return supply.kind === "overtaking" && facts.queuedPlaces < facts.mostPlaces
}

function isIdle(supply: Supply, { queued, sending, unsettled }: Facts): boolean {
  return queued + sending + unsettled === 0 && supply.kind !== "fetching"
}

function dueAfter(supply: Supply): number | null {
  return supply.kind === "fetching" ? null : supply.until
}

/** Deliveries are due, or may be; `overtaking` says whether they wait for those in hand. A fetch under way may have looked too early. */
export function woken(supply: Supply, overtaking = false): Supply {
  const kind = overtaking ? "overtaking" : "more"
  if (supply.kind === "fetching") return { ...supply, then: moreOf(supply.then, kind) }
  return { ...supply, kind: moreOf(supply.kind, kind) }
}

/** A delivery comes due at this time. */
export function dueAt(supply: Supply, at: number | null): Supply {
  return at === null ? supply : { ...supply, until: earlier(supply.until, at) }
}

/** The time has passed at which a delivery came due. */
export function cameDue(supply: Supply, now: number): Supply {
  if (supply.kind === "fetching" || supply.until === null || supply.until > now) return supply
  return { kind: "overtaking", until: null }
}

/** The deliveries of a fetch that is under way are to be given back. */
export function recalled(supply: Supply): Supply {
  return supply.kind === "fetching" ? { ...supply, recalled: true } : supply
}

/** The receiver wants nothing before this time; null: until somebody changes the endpoint. */
export function heldUntil(supply: Supply, until: number | null): Supply {
  if (supply.kind === "fetching") return { ...supply, recalled: true, then: "dry", until }
  return { kind: "dry", until }
}

export function fetchStarted(): Supply {
  return { kind: "fetching", then: "dry", recalled: false, until: null }
}

/** What a fetch says of the lane; `beside`: it was made for something that overtakes. */
export function foundBy(
  deliveries: number,
  nextDueAt: number | null,
  ordered: boolean,
  beside: boolean,
  now: number,
): SupplyKnown {
  // An ordered lane is asked again after each settle: its next delivery may be due by then.
  const isMoreDue = ordered || (nextDueAt !== null && nextDueAt <= now)
  if (deliveries === 0 || !isMoreDue) return { kind: "dry", until: nextDueAt }
  return { kind: beside ? "overtaking" : "more", until: null }
}

/** A fetch has ended; `found` is what it says of the lane. */
export function fetchEnded(supply: Supply, found: SupplyKnown): Supply {
  if (supply.kind !== "fetching") return supply
  if (supply.recalled) return { kind: supply.then, until: supply.until }
  return { kind: moreOf(supply.then, found.kind), until: earlier(supply.until, found.until) }
}

/** When the lane is to be claimed again; null when nothing waits. */
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
