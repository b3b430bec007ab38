/**
 * Names to addresses, asked of the DNS with c-ares. Never with `dns.lookup`: it waits in libuv's pool of four threads, where two
 * tarpit names stalled a healthy one for 10 s, and it reads /etc/hosts and search domains, which lead inside.
 *
 * Every lookup has a c-ares channel of its own. It costs 54 µs, 5 kB and one socket for as long as it lasts (1 000 at once: a
 * healthy name beside them still took 1 ms), and one channel for all has three faults:
 * - it gives up by its own measure: five times the server's average answer, at least 250 ms, whatever `timeout` says. After a few
 *   answers in a millisecond, from a server's cache, one told to wait 5 s gave up on the next name after 1 s;
 * - `cancel()` ends every query of the channel, so that one lookup cannot be cut at its deadline;
 * - its source port stays the same while any query hangs, which helps whoever forges answers.
 * It also makes c-ares' query cache (on by default since c-ares 1.31, off in Node 24) a matter of no concern, and an edit of
 * /etc/resolv.conf is seen by the next lookup.
 */
import { promises as dns } from "node:dns"
import type { Clock } from "../../core/clock.ts"
import { describe } from "../../core/errors.ts"
import { dnsError, type Judgement, judge, type Resolution } from "./resolution.ts"
import { Turns } from "./turns.ts"

export interface ResolverOptions {
  /** "address" or "address:port" of each DNS server; null for the machine's own (/etc/resolv.conf). */
  readonly servers: readonly string[] | null
  readonly timeoutMs: number
  readonly clock: Clock
}

interface Kept {
  readonly resolution: Resolution
  readonly until: number
}

const MOST_NAMES = 2048
/** An endpoint needs one name, or two with a token server. More only pile up where a URL is changed from tarpit to tarpit. */
const MOST_OF_ENDPOINT = 2
/**
 * Of all who create and change endpoints together. Every endpoint that is created has a new id: without this, one who creates
 * endpoints at tarpits has all the places below, and deliveries wait.
 */
const MOST_OF_CREATION = 64
/** As many as the engine has requests under way unless told otherwise, so that many endpoints' tarpits do not fill it. */
const MOST_UNDER_WAY = 2048
/** No host has another character in its name; of c-ares, a NUL ends the name and a backslash starts an escape. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/
const WITH_TTL = { ttl: true } as const

export class NameResolver {
  readonly #options: ResolverOptions
  readonly #ofEndpoint: Turns
  readonly #ofCreation: Turns
  readonly #ofAll: Turns
  readonly #kept = new Map<string, Kept>()
  readonly #underWay = new Map<string, Promise<Resolution>>()
  readonly #channels = new Set<dns.Resolver>()
  #closed = false

  constructor(options: ResolverOptions) {
    this.#options = options
    this.#ofEndpoint = new Turns(MOST_OF_ENDPOINT, options.timeoutMs, options.clock)
    this.#ofCreation = new Turns(MOST_OF_CREATION, options.timeoutMs, options.clock)
    this.#ofAll = new Turns(MOST_UNDER_WAY, options.timeoutMs, options.clock)
    // A server's address that cannot be parsed is found at the start, not at the first delivery.
    this.#openChannel()
  }

  /**
   * All A and AAAA addresses of the name, or a cause. Never rejects. `endpointId` is null for a URL that is only being judged.
   *
   * A lookup over the endpoint's budget waits in the endpoint's own line, for as long as a lookup may take, rather than fail at
   * once: then a URL that was just mended costs no attempt. What waits there is not shared with other endpoints, so that no one
   * can put a name of theirs behind tarpits; what has been asked already is shared by all and counts for who asked first.
   */
  async resolve(name: string, endpointId: string | null): Promise<Resolution> {
    const asked = name.toLowerCase().replace(/\.$/, "")
    if (!HOST_NAME.test(asked)) return dnsError(`${JSON.stringify(name.slice(0, 255))} is not a host name`)
    const ask = async () => this.#known(asked) ?? this.#ask(asked)
    const tooLate = (): Resolution => ({
      problem: "timeout",
      detail: `${asked} was not looked up: too many lookups that hang are before it`,
    })
    const budget = endpointId === null ? this.#ofCreation : this.#ofEndpoint
    return (
      this.#known(asked) ?? budget.run(endpointId ?? "", () => this.#ofAll.run("", ask, tooLate), tooLate)
    )
  }

  close(): void {
    this.#closed = true
    for (const channel of this.#channels) channel.cancel()
  }

  #known(name: string): Resolution | Promise<Resolution> | undefined {
    const kept = this.#kept.get(name)
    if (kept !== undefined && this.#options.clock.now() < kept.until) return kept.resolution
    return this.#underWay.get(name)
  }

  #ask(name: string): Promise<Resolution> {
    if (this.#closed) return Promise.resolve(dnsError(`${name} was not looked up: closed`))
    const lookup = this.#lookUp(name)
      .catch((error) => ({ resolution: dnsError(`${name}: ${describe(error)}`), keepMs: 0 }))
      .then(({ resolution, keepMs }) => {
        this.#underWay.delete(name)
        this.#keep(name, resolution, keepMs)
        return resolution
      })
    this.#underWay.set(name, lookup)
    return lookup
  }

  async #lookUp(name: string): Promise<Judgement> {
    const channel = this.#openChannel()
    this.#channels.add(channel)
    // c-ares looks at its timeouts only at every `timeout` or second, so the one that counts is ours.
    const deadline = this.#options.clock.setTimer(this.#options.timeoutMs, () => channel.cancel())
    // The dot at the end says that no search domain is to be tried. Of CNAMEs only the addresses at their end come back.
    const [a, aaaa] = await Promise.allSettled([
      channel.resolve4(`${name}.`, WITH_TTL),
      channel.resolve6(`${name}.`, WITH_TTL),
    ])
    deadline.cancel()
    this.#channels.delete(channel)
    return judge(name, a, aaaa)
  }

  #openChannel(): dns.Resolver {
    // A lost packet is sent again, or to the next server, after a quarter of the time (the second tick): 8 times `timeout` is
    // the least that four tries take, so that c-ares does not give up before the deadline.
    const channel = new dns.Resolver({ timeout: Math.ceil(this.#options.timeoutMs / 8), tries: 4 })
    if (this.#options.servers !== null) channel.setServers(this.#options.servers)
    return channel
  }

  #keep(name: string, resolution: Resolution, keepMs: number): void {
    this.#kept.delete(name)
    this.#kept.set(name, { resolution, until: this.#options.clock.now() + keepMs })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MOST_NAMES) this.#kept.delete(oldest!)
  }
}
