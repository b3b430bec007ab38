/** The learned state that protects an endpoint, kept with its gate and written with the settle that changes it. */

/**
 * `open`: no request starts before `until`; after that, one probe decides. `ramping`: the probe succeeded and the backlog goes out slowly.
 * A half-open breaker is `open` with `until` in the past: nothing has to be written for it.
 */
export const BREAKER_PHASES = ["closed", "open", "ramping"] as const
export type BreakerPhase = (typeof BREAKER_PHASES)[number]

export interface Protection {
  readonly phase: BreakerPhase
  /** When the phase began; 0 if it never changed. */
  readonly since: number
  /** The end of the last time that the breaker was open. */
  readonly until: number | null
  /** How often it has opened, less one for each healthy interval. */
  readonly step: number
  /** Attempts in a row that say "down". */
  readonly downs: number
  /** The rate limit while ramping, in requests a second. */
  readonly ramp: number | null
  /** Tokens taken from the retry budget, at the time `spentAt`. */
  readonly spent: number
  readonly spentAt: number
  /** The end of the last time that the budget was empty. */
  readonly retriesAt: number | null
  /** Of a breaker that only reports: it would be open. */
  readonly reported: boolean
  /** Attempts in a row without a success; unlike `downs`, with answers such as 404. */
  readonly failures: number
  /** When the first of them failed. */
  readonly failingSince: number | null
  readonly isFailing: boolean
  /** Of the last of them, such as `HTTP 503`. */
  readonly lastError: string | null
  /** How many warnings were given before the endpoint is disabled. */
  readonly warnings: number
}

export const HEALTHY: Protection = {
  phase: "closed",
  since: 0,
  until: null,
  step: 0,
  downs: 0,
  ramp: null,
  spent: 0,
  spentAt: 0,
  retriesAt: null,
  reported: false,
  failures: 0,
  failingSince: null,
  isFailing: false,
  lastError: null,
  warnings: 0,
}

/** Null for an endpoint that has nothing to remember. `until` has a column of its own. */
export function writeProtection({ until: _until, ...rest }: Protection): string | null {
  const changed = Object.entries(rest).filter(
    ([field, value]) => value !== HEALTHY[field as keyof Protection],
  )
  return changed.length === 0 ? null : JSON.stringify(Object.fromEntries(changed))
}

/** The last time that a `Date` can have. */
const LAST_TIME = 8_640_000_000_000_000
/** Larger numbers would not fit into columns, or make loops long. */
const MOST = {
  since: LAST_TIME,
  step: 64,
  downs: 1e9,
  spent: 1e9,
  spentAt: LAST_TIME,
  failures: 1e9,
  warnings: 100,
} as const satisfies Partial<Protection>

/** Takes any text: an operator may have typed it. A field that is not valid has its healthy value. */
export function readProtection(stored: string | null, until: number | null): Protection {
  if (stored === null && until === null) return HEALTHY
  const given = parsed(stored)
  const number = (field: keyof typeof MOST) => {
    const value = given[field]
    return typeof value === "number" && value >= 0 ? Math.min(value, MOST[field]) : HEALTHY[field]
  }
  const time = (field: "retriesAt" | "failingSince") => {
    const value = given[field]
    return typeof value === "number" && value >= 0 && value <= LAST_TIME ? value : null
  }
  const phase = BREAKER_PHASES.find((one) => one === given.phase) ?? (stored === null ? "open" : "closed")
  return {
    phase,
    since: number("since"),
    until: until && Math.min(until, LAST_TIME),
    step: number("step"),
    downs: number("downs"),
    ramp: typeof given.ramp === "number" && given.ramp >= 1 ? Math.floor(Math.min(given.ramp, 10_000)) : null,
    spent: number("spent"),
    spentAt: number("spentAt"),
    retriesAt: time("retriesAt"),
    reported: given.reported === true,
    failures: number("failures"),
    failingSince: time("failingSince"),
    isFailing: given.isFailing === true,
    lastError: typeof given.lastError === "string" ? given.lastError : null,
    warnings: number("warnings"),
  }
}

function parsed(stored: string | null): { readonly [field: string]: unknown } {
  try {
    const value: unknown = JSON.parse(stored ?? "{}")
    return typeof value === "object" && value !== null ? (value as { [field: string]: unknown }) : {}
  } catch {
    return {}
  }
}
