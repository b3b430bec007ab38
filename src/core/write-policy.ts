/** Writes a policy as a user would, for a file that is read again. */
import type { Delays, Policy, PolicyInput } from "./policy.ts"

/** The inverse of `parsePolicy`. */
export function writePolicy({ delays, maxAttempts, maxAge, ...rest }: Policy): PolicyInput {
  return {
    ...rest,
    ...writeDelays(delays),
    ...(maxAttempts === null ? {} : { maxAttempts }),
    ...(maxAge === null ? {} : { maxAge }),
  }
}

function writeDelays(delays: Delays): Pick<PolicyInput, "delays" | "then"> {
  if ("list" in delays) return { delays: delays.list, then: delays.then }
  const { factor, ...formula } = delays
  return { delays: delays.strategy === "exponential" ? { ...formula, factor } : formula }
}
