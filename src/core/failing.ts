/** Whether an endpoint is failing, since when, and when it is disabled: pure functions from state and outcome to state. */
import type { AutoDisablePolicy } from "./policy.ts"
import { HEALTHY, type Protection } from "./protection.ts"

/** Failures in a row, of any deliveries. */
const FAILING_ATTEMPTS = 5
const HOUR_MS = 3_600_000
/** When the operator is told again, before an endpoint is disabled. */
export const WARNINGS_MS: readonly number[] = [24 * HOUR_MS, 72 * HOUR_MS]

/**
 * `error`: null for a success. An endpoint is failing after five failures in a row, after a failed retry with no success since the failure
 * before it, or after a failure that `isAlone`: no success came of late, and the next attempt is more than half a minute away. So an operator
 * hears of it within a minute.
 */
export function learnAttempt(
  state: Protection,
  error: string | null,
  isRetry: boolean,
  isAlone: boolean,
  now: number,
): Protection {
  if (error === null) {
    if (state.failures === 0 && !state.isFailing) return state
    return { ...state, failures: 0, failingSince: null, isFailing: false, lastError: null, warnings: 0 }
  }
  const failures = state.failures + 1
  const failingSince = state.failingSince ?? now
  const isFailing = state.isFailing || failures >= FAILING_ATTEMPTS || (failures >= 2 && isRetry) || isAlone
  const warnings = isFailing ? WARNINGS_MS.filter((ms) => now - failingSince >= ms).length : 0
  return {
    ...state,
    failures,
    failingSince,
    isFailing,
    lastError: error,
    warnings: Math.max(warnings, state.warnings),
  }
}

/**
 * An operator enabled the endpoint: failures from before would disable it again at once. It is failing until its next success. If
 * failures had disabled the endpoint, its backlog goes out slowly, as after an open breaker.
 */
export function enabledAgain(state: Protection, wasFailing: boolean, now: number): Protection {
  const { isFailing, lastError } = state
  const after = isFailing ? { ...HEALTHY, isFailing, lastError } : HEALTHY
  return wasFailing ? { ...after, phase: "ramping", since: now } : after
}

export type FailingTransition = "failing" | "recovered"

/** `failing` also when a warning is due. */
export function failingTransition(before: Protection, after: Protection): FailingTransition | null {
  if (after.isFailing && (!before.isFailing || after.warnings > before.warnings)) return "failing"
  return before.isFailing && !after.isFailing ? "recovered" : null
}

/** When an endpoint that goes on failing is disabled at the earliest; it must have had enough failures by then. Null: never. */
export function disablesAt({ failingSince }: Protection, policy: AutoDisablePolicy | false): number | null {
  return policy === false || failingSince === null ? null : failingSince + policy.after * 1000
}

export function mustDisable(state: Protection, policy: AutoDisablePolicy | false, now: number): boolean {
  const at = disablesAt(state, policy)
  return policy !== false && at !== null && now >= at && state.failures >= policy.failures
}
