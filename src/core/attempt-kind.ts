/** Why an attempt was made. */

/** `manual`: an operator asked for it. `probe`: it tries whether the endpoint of an open circuit breaker works again. */
export const ATTEMPT_KINDS = ["first", "retry", "manual", "probe"] as const
export type AttemptKind = (typeof ATTEMPT_KINDS)[number]

/** `attemptCount`: finished attempts before this one. */
export function attemptKindOf(manual: boolean, isProbe: boolean, attemptCount: number): AttemptKind {
  if (manual) return "manual"
  if (isProbe) return "probe"
  return attemptCount === 0 ? "first" : "retry"
}
