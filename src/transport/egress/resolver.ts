/**
 * Resolves names with c-ares, each lookup on a c-ares channel of its own. docs/decisions/0008 says why: `dns.lookup` shares four threads
 * and reads /etc/hosts, and a shared channel times out early, cannot cancel one lookup, and reuses its source port.
 */
import { promises as dns } from "node:dns"
import type { Clock } from "../../core/clock.ts"
import { describe } from "../../core/errors.ts"
import { KeyedLimiter } from "./keyed-limiter.ts"
import { type CacheableResolution, combineFamilies, dnsError, type Resolution } from "./resolution.ts"

export interface ResolverOptions {
  /** "address" or "address:port" of each DNS server; null for the machine's own (/etc/resolv.conf). */
  readonly servers: readonly string[] | null
  readonly timeoutMs: number
  readonly clock: Clock
}

interface CacheEntry {
  readonly resolution: Resolution
  readonly until: number
}

const MOST_CACHED_NAMES = 2048
/** An endpoint needs one name, or two with a token server. More lookups pile up only if its URL is changed from one tarpit to the next. */
const MOST_PER_ENDPOINT = 2
/**
 * For all lookups that check the URL of a new or changed endpoint. A new endpoint has a new id, so a limit per endpoint would not stop a
 * tenant who creates endpoints at tarpits from taking all places, and deliveries would wait.
 */
const MOST_FOR_CHECKS = 64
/** The engine's default number of requests in flight, so that tarpits of many endpoints do not fill it. */
const MOST_IN_FLIGHT = 2048
/** No host name has other characters; in c-ares a NUL ends the name and a backslash starts an escape. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/
const WITH_TTL = { ttl: true } as const

export class NameResolver {
  readonly #options: ResolverOptions
  readonly #perEndpoint: KeyedLimiter
  readonly #forChecks: KeyedLimiter
  readonly #overall: KeyedLimiter
  readonly #cache = new Map<string, CacheEntry>()
  readonly #inFlight = new Map<string, Promise<Resolution>>()
  readonly #channels = new Set<dns.Resolver>()
  #closed = false

  constructor(options: ResolverOptions) {
    this.#options = options
    this.#perEndpoint = new KeyedLimiter(MOST_PER_ENDPOINT, options.timeoutMs, options.clock)
    this.#forChecks = new KeyedLimiter(MOST_FOR_CHECKS, options.timeoutMs, options.clock)
    this.#overall = new KeyedLimiter(MOST_IN_FLIGHT, options.timeoutMs, options.clock)
    // Throws now, not at the first delivery, if a server's address cannot be parsed.
    this.#openChannel()
  }

  /**
   * All A and AAAA addresses of the name, or a problem. Never rejects. `endpointId` is null for a check of a URL.
   *
   * A lookup over its endpoint's limit waits, for as long as a lookup may take: a URL that was just corrected then costs no attempt. A
   * waiting lookup is not shared with other endpoints, or a tenant could delay their names; a lookup in flight is shared by all.
   */
  async resolve(name: string, endpointId: string | null): Promise<Resolution> {
    const host = name.toLowerCase().replace(/\.$/, "")
    if (!HOST_NAME.test(host)) return dnsError(`${JSON.stringify(name.slice(0, 255))} is not a host name`)
    const lookUp = async () => this.#known(host) ?? this.#startLookup(host)
    const tooLate = (): Resolution => ({
      problem: "timeout",
      detail: `${host} was not looked up: too many other lookups hang`,
    })
    const limiter = endpointId === null ? this.#forChecks : this.#perEndpoint
    return (
      this.#known(host) ??
      limiter.run(endpointId ?? "", () => this.#overall.run("", lookUp, tooLate), tooLate)
    )
  }

  close(): void {
    this.#closed = true
    for (const channel of this.#channels) channel.cancel()
  }

  #known(name: string): Resolution | Promise<Resolution> | undefined {
    const cached = this.#cache.get(name)
    if (cached !== undefined && this.#options.clock.now() < cached.until) return cached.resolution
    return this.#inFlight.get(name)
  }

  #startLookup(name: string): Promise<Resolution> {
    if (this.#closed) return Promise.resolve(dnsError(`${name} was not looked up: closed`))
    const lookup = this.#lookUp(name)
      .catch((error) => ({ resolution: dnsError(`${name}: ${describe(error)}`), cacheMs: 0 }))
      .then(({ resolution, cacheMs }) => {
        this.#inFlight.delete(name)
        this.#remember(name, resolution, cacheMs)
        return resolution
      })
    this.#inFlight.set(name, lookup)
    return lookup
  }

  async #lookUp(name: string): Promise<CacheableResolution> {
    const channel = this.#openChannel()
    this.#channels.add(channel)
    // c-ares checks its timeouts only once in `timeout` or once a second, so this timer is the real deadline.
    const deadline = this.#options.clock.setTimer(this.#options.timeoutMs, () => channel.cancel())
    // The final dot prevents search domains. For a CNAME, c-ares returns the addresses at its end.
    const [a, aaaa] = await Promise.allSettled([
      channel.resolve4(`${name}.`, WITH_TTL),
      channel.resolve6(`${name}.`, WITH_TTL),
    ])
    deadline.cancel()
    this.#channels.delete(channel)
    return combineFamilies(name, a, aaaa)
  }

  #openChannel(): dns.Resolver {
    // Four tries take at least 8 times `timeout`, so c-ares does not give up before our deadline. A lost packet is sent again, or to
    // the next server, after a quarter of the time.
    const channel = new dns.Resolver({ timeout: Math.ceil(this.#options.timeoutMs / 8), tries: 4 })
    if (this.#options.servers !== null) channel.setServers(this.#options.servers)
    return channel
  }

  #remember(name: string, resolution: Resolution, cacheMs: number): void {
    this.#cache.delete(name)
    this.#cache.set(name, { resolution, until: this.#options.clock.now() + cacheMs })
    const [oldest] = this.#cache.keys()
    if (this.#cache.size > MOST_CACHED_NAMES) this.#cache.delete(oldest!)
  }
}
