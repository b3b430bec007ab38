/** What-if: the attempts that a lower limit of attempts or of age would have saved, and the deliveries that it would have lost. */
import { type Expense, expenseOf, type NumberedSum, type Prices, ratio, sumOf } from "./cost.ts"
import { invalid } from "./errors.ts"

export interface Limits {
  readonly maxAttempts: number | null
  /** In seconds. */
  readonly maxAge: number | null
}

/** The bounds differ where attempts of one roll-up lie on both sides of the age, or have none. */
export interface Bounds<T> {
  readonly atLeast: T
  readonly atMost: T
}

export interface WhatIf extends Limits {
  /** Attempts that would not have been made. */
  readonly saved: Bounds<Expense>
  readonly savedShare: Bounds<number>
  /** Deliveries that would be dead instead of delivered. */
  readonly lost: Bounds<number>
  /** The deliveries that were delivered. */
  readonly delivered: number
  /** A sentence for people. */
  readonly text: string
}

/** Sums of the attempts that started at `maxAge` or later. */
export type OlderSums = Bounds<readonly NumberedSum[]>

/**
 * Each attempt up to the limits has the outcome that it had, and no later attempt is made, so nothing has to be replayed. Limits above the
 * attempts that were made are refused: the outcomes of further attempts are not known.
 */
export function whatIf(
  limits: Limits,
  sums: readonly NumberedSum[],
  older: OlderSums | null,
  prices: Prices | null,
): WhatIf {
  const { attempts, succeeded } = sumOf(sums)
  if (attempts > 0) refuseUnknowable(limits, sums, older)
  const most = limits.maxAttempts ?? Number.POSITIVE_INFINITY
  const isBeyond = ({ attemptNumber }: NumberedSum) => attemptNumber! > most
  const beyond = sums.filter(isBeyond)
  const cut = (bound: keyof OlderSums) => [
    ...beyond,
    ...(older?.[bound].filter((sum) => !isBeyond(sum)) ?? []),
  ]
  const bounds = <T>(of: (sums: readonly NumberedSum[]) => T): Bounds<T> => ({
    atLeast: of(cut("atLeast")),
    atMost: of(cut("atMost")),
  })
  const result = {
    ...limits,
    saved: bounds((sums) => expenseOf(sums, prices)),
    savedShare: bounds((sums) => ratio(sumOf(sums).attempts, attempts) ?? 0),
    lost: bounds((sums) => sumOf(sums).succeeded),
    delivered: succeeded,
  }
  return { ...result, text: describe(result) }
}

function refuseUnknowable(
  { maxAttempts, maxAge }: Limits,
  sums: readonly NumberedSum[],
  older: OlderSums | null,
): void {
  const tried = sums.filter(({ attempts }) => attempts > 0).map(({ attemptNumber }) => attemptNumber!)
  const highest = Math.max(...tried)
  if (maxAttempts !== null && maxAttempts > highest)
    throw invalid(
      "maxAttempts",
      `must be at most ${highest}: no delivery had more attempts in this span, and the outcomes of further attempts are not known`,
    )
  if (maxAge !== null && sumOf(older!.atMost).attempts === 0)
    throw invalid(
      "maxAge",
      "must be lower: no delivery was tried at this age in this span, and the outcomes of later attempts are not known",
    )
}

type Described = Omit<WhatIf, "text">

/** `stop after 6 attempts: −41 % attempts, 2 of 10 000 lost`. */
function describe({ maxAttempts, maxAge, savedShare, lost, delivered }: Described): string {
  const limits = [
    ...(maxAttempts === null ? [] : [`after ${maxAttempts} ${maxAttempts === 1 ? "attempt" : "attempts"}`]),
    ...(maxAge === null ? [] : [`at an age of ${maxAge} s`]),
  ]
  const share = range(savedShare, (one) => (one === 0 ? "0" : `−${percent(one)}`))
  return `stop ${limits.join(" or ")}: ${share} % attempts, ${range(lost, grouped)} of ${grouped(delivered)} lost`
}

function range(bounds: Bounds<number>, text: (value: number) => string): string {
  const [least, most] = [text(bounds.atLeast), text(bounds.atMost)]
  return least === most ? least : `${least} to ${most}`
}

/** A share that is neither nothing nor everything is shown as neither. */
function percent(share: number): string {
  const rounded = Math.round(share * 100)
  if (rounded === 0) return "<1"
  return rounded === 100 && share < 1 ? ">99" : String(rounded)
}

/** `10 000`, with spaces as in the docs. */
function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ")
}
