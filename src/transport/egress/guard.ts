/**
 * Decides where a connection may go. A URL is judged when it is given and again before every connection; a name is resolved once
 * for a connection, every address that it has must be allowed, and the connection goes to one of these and to no other address.
 */
import type { Clock } from "../../core/clock.ts"
import { invalid } from "../../core/errors.ts"
import type { FailureCause } from "../../core/outcome.ts"
import { isAllowed } from "./addresses.ts"
import { NameResolver } from "./resolver.ts"
import type { EgressSettings } from "./settings.ts"
import { vetUrl } from "./targets.ts"

const RESOLVE_MS = 5000
const OBJECTION_MS = 1000
const MOST_TARGETS = 10_000
/** So that what is kept for strangers' URLs is bounded in bytes too. */
const LONGEST_KEPT_URL = 512

export interface Target {
  readonly origin: string
  readonly host: string
  readonly path: string
}

/** Why no connection was made: the word that a tenant sees, and the detail for the operator's log. */
export class EgressError extends Error {
  readonly failure: FailureCause

  constructor(failure: FailureCause, detail: string) {
    super(detail)
    this.name = "EgressError"
    this.failure = failure
  }
}

export class Guard {
  readonly settings: EgressSettings
  readonly #resolver: NameResolver
  readonly #clock: Clock
  readonly #random: () => number
  readonly #targets = new Map<string, Target | null>()

  constructor(settings: EgressSettings, clock: Clock, random = Math.random) {
    this.settings = settings
    this.#clock = clock
    this.#random = random
    this.#resolver = openResolver(settings.dns, clock)
  }

  /**
   * A sentence that says why the URL cannot be used, or null. A name that does not resolve now may do so later, and is judged
   * again before every connection: only one that is known to lead inside is refused.
   */
  async objection(url: string): Promise<string | null> {
    const verdict = vetUrl(url, this.settings.rules)
    if (!verdict.ok) return verdict.reason
    if (verdict.literal) return null
    const forbidden = await this.#withPatience(this.#forbids(verdict.url.hostname))
    return forbidden
      ? "must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it"
      : null
  }

  #forbids(name: string): Promise<boolean> {
    return this.#addressesOf(name, null).then(
      () => false,
      (error) => error instanceof EgressError && error.failure === "target_forbidden",
    )
  }

  /** Whoever creates an endpoint does not wait for a name server that does not answer. */
  #withPatience(answer: Promise<boolean>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(OBJECTION_MS, () => resolve(false))
      void answer.then(resolve).finally(() => timer.cancel())
    })
  }

  /** The addresses that a connection to this URL may go to, at least one, in the order in which they are tried. Rejects with an EgressError. */
  async vet(url: URL, endpointId: string): Promise<readonly string[]> {
    const verdict = vetUrl(url.href, this.settings.rules)
    if (!verdict.ok) throw new EgressError("target_forbidden", `${url.host} ${verdict.reason}`)
    const { hostname } = verdict.url
    // `URL` writes IPv6 addresses in brackets, sockets take them without.
    return verdict.literal ? [hostname.replace(/^\[|\]$/g, "")] : this.#addressesOf(hostname, endpointId)
  }

  /** Where a request to this URL goes, or null when it must not: what can be said without resolving its name. */
  target(url: string): Target | null {
    let target = this.#targets.get(url)
    if (target === undefined) {
      const verdict = vetUrl(url, this.settings.rules)
      target = verdict.ok ? toTarget(verdict.url) : null
      if (url.length > LONGEST_KEPT_URL) return target
      // The rules do not change, so neither does the answer; judging anew cost 4 % of the throughput.
      if (this.#targets.size >= MOST_TARGETS) this.#targets.clear()
      this.#targets.set(url, target)
    }
    return target
  }

  async #addressesOf(name: string, endpointId: string | null): Promise<readonly string[]> {
    // The one name that no name server knows; it passes only where the operator opened loopback.
    if (name === "localhost") return ["127.0.0.1", "::1"].filter((address) => this.allows(address))
    const answer = await this.#resolver.resolve(name, endpointId)
    if ("problem" in answer) throw new EgressError(answer.problem, `${name}: ${answer.detail}`)
    // One bad address among good ones is how a guard is talked past: the lot is refused.
    const forbidden = answer.addresses.filter((address) => !this.allows(address))
    if (forbidden.length > 0) throw new EgressError("target_forbidden", `${name} has ${forbidden.join(", ")}`)
    if (answer.addresses.length === 0) throw new EgressError("dns_error", `${name} has no address`)
    return this.#inOrder(answer.addresses)
  }

  /** The families by turns, IPv4 first: many machines have IPv6 addresses and no way out over IPv6. Each begins at an address drawn by chance. */
  #inOrder(addresses: readonly string[]): readonly string[] {
    const [four, six] = [false, true].map((isSix) => {
      const family = addresses.filter((address) => address.includes(":") === isSix)
      const first = Math.floor(this.#random() * family.length)
      return [...family.slice(first), ...family.slice(0, first)]
    }) as [string[], string[]]
    const longer = Math.max(four.length, six.length)
    return Array.from({ length: longer }, (_, i) => [...four.slice(i, i + 1), ...six.slice(i, i + 1)]).flat()
  }

  allows(address: string | undefined): boolean {
    return address !== undefined && isAllowed(address, this.settings.rules.addresses)
  }

  close(): void {
    this.#resolver.close()
  }
}

function toTarget({ origin, host, pathname, search }: URL): Target {
  return { origin, host, path: pathname + search }
}

function openResolver(servers: readonly string[] | null, clock: Clock): NameResolver {
  try {
    return new NameResolver({ servers, timeoutMs: RESOLVE_MS, clock })
  } catch {
    throw invalid("egress.dns", 'must be addresses of name servers such as "10.0.0.53" or "127.0.0.1:5353"')
  }
}
