/** How long to wait after the n-th failure. */
import { wholeNumber } from "./input.ts"
import type { Delays, Policy } from "./policy.ts"
import { asPolicy, type PresetName } from "./presets.ts"

/** A source of uniform numbers in [0, 1), passed in so that jitter can be tested. */
export type Random = () => number

/** The schedule's delay in seconds after failure n (1, 2, …), before jitter. Finite for every n. */
export function scheduledDelay(delays: Delays, failure: number): number {
  if ("list" in delays) return delays.list[failure - 1] ?? delays.then
  const { strategy, base, factor, cap } = delays
  switch (strategy) {
    case "fixed":
      return Math.min(base, cap)
    case "linear":
      return Math.min(base * failure, cap)
    case "exponential":
      // 2 ** 1024 is Infinity, which the cap bounds; 0 * Infinity would be NaN.
      return base === 0 ? 0 : Math.min(base * factor ** (failure - 1), cap)
    default:
      return strategy satisfies never
  }
}

/** The longest delay of the schedule in seconds, before jitter. */
export function longestDelay(delays: Delays): number {
  return "list" in delays ? Math.max(...delays.list, delays.then) : delays.cap
}

/** The delay in milliseconds with jitter drawn; a formula's cap holds after the jitter too. */
export function delayMs(policy: Policy, failure: number, random: Random): number {
  const seconds = scheduledDelay(policy.delays, failure) * jitterFactor(policy, random)
  const capped = "cap" in policy.delays ? Math.min(seconds, policy.delays.cap) : seconds
  return Math.round(capped * 1000)
}

function jitterFactor({ jitter }: Policy, random: Random): number {
  if (jitter === "none") return 1
  if (jitter === "full") return random()
  const [min, max] = jitter
  return min + (max - min) * random()
}

/**
 * Delays between our own tries, such as to reach a server: from `firstMs` they double up to `longestMs`. Up to a random half is left out,
 * so that processes that fail together do not try again together.
 */
export class Backoff {
  readonly #delays: Delays
  readonly #random: Random
  #failures = 0

  constructor(options: { readonly firstMs: number; readonly longestMs: number; readonly random: Random }) {
    this.#delays = { strategy: "exponential", base: options.firstMs, factor: 2, cap: options.longestMs }
    this.#random = options.random
  }

  /** The delay after one more failure, or after the n-th for a caller that counts them. */
  nextMs(failure = this.#failures + 1): number {
    this.#failures = failure
    return scheduledDelay(this.#delays, failure) * (0.5 + this.#random() / 2)
  }

  reset(): void {
    this.#failures = 0
  }
}

/** The start of each attempt in seconds after the first, without jitter. */
export function previewSchedule(policy: Policy, most = 100): number[] {
  const starts = [0]
  for (let failure = 1; failure < most; failure++) {
    if (policy.maxAttempts !== null && failure >= policy.maxAttempts) break
    const start = starts.at(-1)! + scheduledDelay(policy.delays, failure)
    if (policy.maxAge !== null && start >= policy.maxAge) break
    starts.push(start)
  }
  return starts
}

/** Seconds from the n-th failure (1, 2, …) to the next attempt, with jitter if `random` is given. */
export function retryDelay(given: Policy | PresetName, failure: number, random?: Random): number {
  const policy = asPolicy(given)
  wholeNumber(failure, "failure", 1, Number.MAX_SAFE_INTEGER)
  return random === undefined
    ? scheduledDelay(policy.delays, failure)
    : delayMs(policy, failure, random) / 1000
}
