/** What attempts cost, from sums of attempts by their number: requests, bytes, seconds of slots and, with prices, money. */

/** Prices that the operator set. A gigabyte is 10⁹ bytes. */
export interface Prices {
  readonly perThousandAttempts: number
  readonly perGigabyteOut: number
  readonly perSlotHour: number
  /** ISO 4217, such as EUR. */
  readonly currency: string
}

/** Sums of attempts with one number; 0: deliveries that were given up before their first attempt. */
export interface NumberedSum {
  readonly attemptNumber?: number
  readonly attempts: number
  readonly succeeded: number
  readonly dead: number
  readonly bytesOut: number
  readonly bytesIn: number
  readonly durationMs: number
}

export interface Expense {
  readonly attempts: number
  readonly bytesOut: number
  /** Of the responses' bodies, as far as they were kept. */
  readonly bytesIn: number
  /** An attempt occupies a slot from its start to its outcome. */
  readonly slotSeconds: number
  /** In the currency of the prices; null without prices. */
  readonly price: number | null
}

export interface Cost extends Expense {
  readonly delivered: number
  /** Given up; without cancelled and expunged deliveries. */
  readonly dead: number
  readonly retries: number
  /** Null while nothing was delivered. */
  readonly attemptsPerDelivered: number | null
  /** The share of attempts that delivered nothing; null without attempts. */
  readonly wastedShare: number | null
  /** Null without retries. */
  readonly retrySuccessRate: number | null
}

/** The yield of the n-th attempt of deliveries. */
export interface AttemptYield {
  /** 20 stands for the 20th attempt and all later ones. */
  readonly number: number
  readonly attempts: number
  readonly delivered: number
  readonly successRate: number
  /** Of the price of all attempts; without prices, of their number. */
  readonly costShare: number
  /** Of everything that was delivered; null while nothing was. */
  readonly deliveredShare: number | null
}

const FIELDS = ["attempts", "succeeded", "dead", "bytesOut", "bytesIn", "durationMs"] as const
type Sum = { readonly [F in (typeof FIELDS)[number]]: number }

/** At most the largest exact number, since rows that were typed by hand may have any. */
export function sumOf(sums: readonly Sum[]): Sum {
  const total = { attempts: 0, succeeded: 0, dead: 0, bytesOut: 0, bytesIn: 0, durationMs: 0 }
  for (const sum of sums)
    for (const field of FIELDS) total[field] = Math.min(total[field] + sum[field], Number.MAX_SAFE_INTEGER)
  return total
}

export function expenseOf(sums: readonly Sum[], prices: Prices | null): Expense {
  const { attempts, bytesOut, bytesIn, durationMs } = sumOf(sums)
  const price = prices && priceOf(prices, attempts, bytesOut, durationMs)
  return { attempts, bytesOut, bytesIn, slotSeconds: durationMs / 1000, price }
}

function priceOf(prices: Prices, attempts: number, bytesOut: number, durationMs: number): number {
  const { perThousandAttempts, perGigabyteOut, perSlotHour } = prices
  return (
    (attempts / 1000) * perThousandAttempts +
    (bytesOut / 1e9) * perGigabyteOut +
    (durationMs / 3_600_000) * perSlotHour
  )
}

export function costOf(sums: readonly NumberedSum[], prices: Prices | null): Cost {
  const { succeeded, dead } = sumOf(sums)
  const expense = expenseOf(sums, prices)
  const retries = sumOf(sums.filter(({ attemptNumber }) => attemptNumber! > 1))
  return {
    ...expense,
    delivered: succeeded,
    dead,
    retries: retries.attempts,
    attemptsPerDelivered: ratio(expense.attempts, succeeded),
    wastedShare: ratio(expense.attempts - succeeded, expense.attempts),
    retrySuccessRate: ratio(retries.succeeded, retries.attempts),
  }
}

/** One for each number that has attempts, in order. */
export function yieldsOf(sums: readonly NumberedSum[], prices: Prices | null): AttemptYield[] {
  const total = costOf(sums, prices)
  const tried = sums.filter(({ attempts }) => attempts > 0)
  return tried
    .toSorted((a, b) => a.attemptNumber! - b.attemptNumber!)
    .map((sum) => ({
      number: sum.attemptNumber!,
      attempts: sum.attempts,
      delivered: sum.succeeded,
      successRate: sum.succeeded / sum.attempts,
      costShare:
        ratio(expenseOf([sum], prices).price ?? 0, total.price ?? 0) ?? sum.attempts / total.attempts,
      deliveredShare: ratio(sum.succeeded, total.delivered),
    }))
}

/** Null for a share of nothing. */
export function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

/** The more expensive first: by price, and by attempts without prices. */
export function byExpense(a: Expense, b: Expense): number {
  return (b.price ?? 0) - (a.price ?? 0) || b.attempts - a.attempts
}
