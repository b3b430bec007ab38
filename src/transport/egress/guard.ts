/**
 * Decides where a connection may go. It checks a URL when an endpoint is created or changed, and again before every connection. For a
 * connection it resolves the name once, requires that all its addresses are allowed, and gives these addresses to connect to.
 */
import { BoundedCache } from "../../core/bounded-cache.ts"
import type { Clock } from "../../core/clock.ts"
import { invalid } from "../../core/errors.ts"
import { TransportError } from "../error.ts"
import { isAllowed } from "./addresses.ts"
import { NameResolver } from "./resolver.ts"
import type { EgressSettings } from "./settings.ts"
import { schemesOf, vetUrl } from "./targets.ts"

const RESOLVE_MS = 5000
const URL_CHECK_MS = 1000
const MOST_TARGETS = 10_000
/** Longer URLs are not cached: the cache is bounded in bytes too. */
const LONGEST_CACHED_URL = 512

/** Where a request goes, as its connection and its head need it. */
export interface HttpTarget {
  readonly origin: string
  readonly host: string
  readonly path: string
}

export class Guard {
  readonly settings: EgressSettings
  readonly #resolver: NameResolver
  readonly #clock: Clock
  readonly #random: () => number
  readonly #targets = new BoundedCache<string, HttpTarget | null>(MOST_TARGETS)

  constructor(settings: EgressSettings, clock: Clock, random = Math.random) {
    this.settings = settings
    this.#clock = clock
    this.#random = random
    this.#resolver = openResolver(settings.dns, clock)
  }

  get schemes(): readonly string[] {
    return schemesOf(this.settings.rules)
  }

  /**
   * Why the URL cannot be used, as a sentence, or null. A name that does not resolve now is accepted: it may resolve later, and it is
   * checked again before every connection.
   */
  async urlProblem(url: string): Promise<string | null> {
    const check = vetUrl(url, this.settings.rules)
    if (!check.ok) return check.reason
    if (check.literal) return null
    const forbidden = await this.#withinASecond(this.#forbids(check.url.hostname))
    return forbidden
      ? "must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it"
      : null
  }

  #forbids(name: string): Promise<boolean> {
    return this.#addressesOf(name, null).then(
      () => false,
      (error) => error instanceof TransportError && error.failure === "target_forbidden",
    )
  }

  /** The caller who creates an endpoint does not wait for a name server that is silent. */
  #withinASecond(answer: Promise<boolean>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(URL_CHECK_MS, () => resolve(false))
      void answer.then(resolve).finally(() => timer.cancel())
    })
  }

  /** The addresses for a connection to this URL, at least one, in the order to try them. Rejects with a TransportError. */
  async vet(url: URL, endpointId: string): Promise<readonly string[]> {
    const check = vetUrl(url.href, this.settings.rules)
    if (!check.ok) throw new TransportError("target_forbidden", `${url.host} ${check.reason}`)
    const { hostname } = check.url
    // `URL` writes IPv6 addresses in brackets, sockets take them without.
    return check.literal ? [hostname.replace(/^\[|\]$/g, "")] : this.#addressesOf(hostname, endpointId)
  }

  /** Where a request to this URL goes, or null if the URL is refused. The name is not resolved here. */
  target(url: string): HttpTarget | null {
    let target = this.#targets.get(url)
    if (target === undefined) {
      const check = vetUrl(url, this.settings.rules)
      target = check.ok ? toTarget(check.url) : null
      if (url.length > LONGEST_CACHED_URL) return target
      // The rules never change while the process runs; checking each time cost 4 % of the throughput.
      this.#targets.set(url, target)
    }
    return target
  }

  async #addressesOf(name: string, endpointId: string | null): Promise<readonly string[]> {
    // No name server knows `localhost`. It comes here only if the operator opened loopback.
    if (name === "localhost") return ["127.0.0.1", "::1"].filter((address) => this.allows(address))
    const resolution = await this.#resolver.resolve(name, endpointId)
    if ("problem" in resolution) throw new TransportError(resolution.problem, `${name}: ${resolution.detail}`)
    // One forbidden address refuses the name: an attacker mixes it with good ones to get past a check of only one of them.
    const forbidden = resolution.addresses.filter((address) => !this.allows(address))
    if (forbidden.length > 0)
      throw new TransportError("target_forbidden", `${name} has ${forbidden.join(", ")}`)
    if (resolution.addresses.length === 0) throw new TransportError("dns_error", `${name} has no address`)
    return this.#inOrder(resolution.addresses)
  }

  /** IPv4 and IPv6 alternate, each from a random start. IPv4 is first: many machines have IPv6 addresses and no route over IPv6. */
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

function toTarget({ origin, host, pathname, search }: URL): HttpTarget {
  return { origin, host, path: pathname + search }
}

function openResolver(servers: readonly string[] | null, clock: Clock): NameResolver {
  try {
    return new NameResolver({ servers, timeoutMs: RESOLVE_MS, clock })
  } catch {
    throw invalid("egress.dns", 'must be addresses of name servers such as "10.0.0.53" or "127.0.0.1:5353"')
  }
}
