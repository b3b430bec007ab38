/** Combines the A and AAAA answers for a name into its addresses or a problem, and says how long to cache that. */

export type Resolution =
  | { readonly addresses: readonly string[] }
  /** The detail is for the operator's log. */
  | { readonly problem: "dns_error" | "timeout"; readonly detail: string }

export interface CacheableResolution {
  readonly resolution: Resolution
  readonly cacheMs: number
}

/** The answer for one address family, as c-ares gives it. */
export type FamilyAnswer = PromiseSettledResult<readonly { readonly address: string; readonly ttl: number }[]>

/** No honest host has more; a name with hundreds of addresses is an attack. */
const MOST_ADDRESSES = 32
const LEAST_CACHE_MS = 1000
const MOST_CACHE_MS = 30_000
/** Spares the DNS server when a lane is full of deliveries for a dead name; shorter than the first retry delay of `standard`. */
const PROBLEM_CACHE_MS = 3000

/**
 * If one family has addresses, a failure of the other is ignored, whatever its reason: some servers drop or refuse AAAA queries. That is
 * safe because only the addresses found here are ever connected to.
 */
export function combineFamilies(name: string, a: FamilyAnswer, aaaa: FamilyAnswer): CacheableResolution {
  const found = [a, aaaa].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
  if (found.length === 0) return { resolution: nothingFound(name, a, aaaa), cacheMs: PROBLEM_CACHE_MS }
  if (found.length > MOST_ADDRESSES)
    return { resolution: dnsError(`${name} has ${found.length} addresses`), cacheMs: PROBLEM_CACHE_MS }
  const ttlMs = Math.min(...found.map(({ ttl }) => ttl)) * 1000
  return {
    resolution: { addresses: found.map(({ address }) => address) },
    cacheMs: Math.max(LEAST_CACHE_MS, Math.min(MOST_CACHE_MS, ttlMs)),
  }
}

export function dnsError(detail: string): Resolution {
  return { problem: "dns_error", detail }
}

/** Our own deadline cancels queries. */
const TIMEOUT_CODES = ["ETIMEOUT", "ECANCELLED"]

/** A timeout only if no family got an answer: an error for one family decides, even if the other timed out. */
function nothingFound(name: string, a: FamilyAnswer, aaaa: FamilyAnswer): Resolution {
  const codes = [codeOf(a), codeOf(aaaa)]
  const detail = `${name}: A ${codes[0]}, AAAA ${codes[1]}`
  const errors = codes.filter((code) => code !== "ENODATA")
  if (errors.length > 0 && errors.every((code) => TIMEOUT_CODES.includes(code)))
    return { problem: "timeout", detail }
  return dnsError(detail)
}

function codeOf(answer: FamilyAnswer): string {
  // c-ares gives an empty list, not an error, for a CNAME without addresses.
  return answer.status === "fulfilled" ? "ENODATA" : String(answer.reason?.code)
}
