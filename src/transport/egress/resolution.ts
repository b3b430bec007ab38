/** What the answers about a name come to: its addresses or a problem, and for how long that is kept. */

export type Resolution =
  | { readonly addresses: readonly string[] }
  /** The detail is for the operator's log. */
  | { readonly problem: "dns_error" | "timeout"; readonly detail: string }

export interface Judgement {
  readonly resolution: Resolution
  readonly keepMs: number
}

/** A family's answer, as c-ares gives it. */
export type FamilyAnswer = PromiseSettledResult<readonly { readonly address: string; readonly ttl: number }[]>

/** Nobody needs more for one host; who publishes them wants to be expensive. */
const MOST_ADDRESSES = 32
const LEAST_KEPT_MS = 1000
const MOST_KEPT_MS = 30_000
/** Spares the DNS server a lane full of deliveries for a dead name; shorter than the first retry of `standard`. */
const PROBLEM_KEPT_MS = 3000

/**
 * One family without an answer does not matter when the other has one, whatever the reason (servers that drop or refuse AAAA are
 * about): only addresses that are known here are ever connected to.
 */
export function judge(name: string, a: FamilyAnswer, aaaa: FamilyAnswer): Judgement {
  const found = [a, aaaa].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
  if (found.length === 0) return { resolution: nothingFound(name, a, aaaa), keepMs: PROBLEM_KEPT_MS }
  if (found.length > MOST_ADDRESSES)
    return { resolution: dnsError(`${name} has ${found.length} addresses`), keepMs: PROBLEM_KEPT_MS }
  const ttlMs = Math.min(...found.map(({ ttl }) => ttl)) * 1000
  return {
    resolution: { addresses: found.map(({ address }) => address) },
    keepMs: Math.max(LEAST_KEPT_MS, Math.min(MOST_KEPT_MS, ttlMs)),
  }
}

export function dnsError(detail: string): Resolution {
  return { problem: "dns_error", detail }
}

/** A cancelled query is one that our deadline cut off. */
const LATE = ["ETIMEOUT", "ECANCELLED"]

/** Only silence is a timeout: an error for one family is the name's answer, even if nothing came for the other. */
function nothingFound(name: string, a: FamilyAnswer, aaaa: FamilyAnswer): Resolution {
  const codes = [codeOf(a), codeOf(aaaa)]
  const detail = `${name}: A ${codes[0]}, AAAA ${codes[1]}`
  const told = codes.filter((code) => code !== "ENODATA")
  if (told.length > 0 && told.every((code) => LATE.includes(code))) return { problem: "timeout", detail }
  return dnsError(detail)
}

function codeOf(answer: FamilyAnswer): string {
  // A CNAME that leads to nothing comes as an empty list, not as an error.
  return answer.status === "fulfilled" ? "ENODATA" : String(answer.reason?.code)
}
