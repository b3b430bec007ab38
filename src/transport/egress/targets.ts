/** Checks a URL without resolving its name: scheme, user info, port and host. */
import { isIP } from "node:net"
import { fullAddress } from "../../core/input.ts"
import { type AddressRules, isAllowed } from "./addresses.ts"

/** `"default"` refuses the ports of well-known services, `"any"` none, a list all that are not in it. Port 0 is always refused. */
export type PortRules = "default" | "any" | readonly number[]

export interface TargetRules {
  /** Whether `http://` is allowed beside `https://`. */
  readonly http: boolean
  readonly ports: PortRules
  readonly addresses: AddressRules
}

/** `url` is normalised: callers use it and not the text. A `literal` host is an allowed IP address; a name's addresses are still to be checked. */
type UrlCheck =
  | { readonly ok: true; readonly url: URL; readonly literal: boolean }
  /** `reason` reads after the name of the field: "url must not use port 0". */
  | { readonly ok: false; readonly reason: string }

export function schemesOf({ http }: TargetRules): readonly string[] {
  return http ? ["http:", "https:"] : ["https:"]
}

export function vetUrl(url: string, rules: TargetRules): UrlCheck {
  const parsed = URL.parse(url)
  const schemes = schemesOf(rules)
  if (parsed === null || !schemes.includes(parsed.protocol)) return refuse(fullAddress(schemes))
  if (parsed.username !== "" || parsed.password !== "") {
    return refuse("must not carry a user name or password; use headers")
  }
  const reason = portProblem(portOf(parsed), rules.ports)
  if (reason !== null) return refuse(reason)

  const address = parsed.hostname.replace(/^\[(.*)\]$/, "$1")
  if (isIP(address) !== 0) {
    // The same sentence for every forbidden address, so that it does not reveal which addresses are this machine's own.
    if (!isAllowed(address, rules.addresses))
      return refuse(
        "must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it",
      )
    return { ok: true, url: parsed, literal: true }
  }
  // "name." is the same host as "name", but certificates and SNI have no dot. The name is checked before `hostname` is set:
  // the setter would turn "127.0.0.1..", which is a name, into an address.
  const name = parsed.hostname.replace(/\.$/, "")
  const problem = nameProblem(name, rules.addresses)
  if (problem !== null) return refuse(problem)
  parsed.hostname = name
  return { ok: true, url: parsed, literal: false }
}

function refuse(reason: string): UrlCheck {
  return { ok: false, reason }
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port)
  return protocol === "https:" ? 443 : 80
}

/**
 * Ports above 1023 where a request does harm: these services trust every client, or read the lines of a body as commands. The usual
 * ports of receivers (3000, 5000, 8080, 8443 …) and the ephemeral ports (from 32768 on) stay open.
 */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  // Databases: SQL Server, Oracle, MySQL, PostgreSQL, CouchDB, Cassandra, Elasticsearch (2), MongoDB (3).
  ...[1433, 1521, 3306, 5432, 5984, 9042, 9200, 9300, 27017, 27018, 27019],
  // Caches and queues: AMQP (TLS, plain), Redis and its sentinel, Kafka, memcached, RabbitMQ's management.
  ...[5671, 5672, 6379, 26379, 9092, 11211, 15672],
  // Orchestration: Docker (2), etcd (2), Erlang's port mapper, Kubernetes, Consul, kubelet (2).
  ...[2375, 2376, 2379, 2380, 4369, 6443, 8500, 10250, 10255],
  // Files and screens: NFS, remote desktop, VNC, X11.
  ...[2049, 3389, 5900, 6000],
  // Line-based protocols, which browsers refuse too: SIP, IRC.
  ...[5060, 5061, 6665, 6666, 6667, 6668, 6669, 6697],
])

function portProblem(port: number, rules: PortRules): string | null {
  if (port === 0) return "must not use port 0"
  if (rules === "any") return null
  if (rules !== "default")
    return rules.includes(port) ? null : `must use one of the ports ${rules.join(", ")}`
  // Below 1024 only the two ports of the web are open; the others are system services (22 SSH, 25 mail, 53 DNS, 445 files …).
  if (port < 1024 ? port === 80 || port === 443 : !SERVICE_PORTS.has(port)) return null
  return `must not use port ${port}, which belongs to another service`
}

/**
 * Reserved for this machine (RFC 6761), the local link (RFC 6762), private networks (ICANN) and home networks (RFC 8375). `.lan`, `.corp`
 * and the like are not reserved: only their addresses are checked, so that an operator who opened a private range can use them.
 */
const LOCAL_NAME = /(^|\.)(localhost|local|internal|home\.arpa)$/

function nameProblem(name: string, addresses: AddressRules): string | null {
  // Most first tries are with localhost, so this sentence says what to do.
  if (name === "localhost")
    return isLoopbackOpen(addresses)
      ? null
      : "must not lead to this machine, unless egress.allow or POSTHORN_EGRESS_ALLOW opens 127.0.0.0/8"
  const labels = name.split(".")
  if (name.length > 253 || !labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label))) {
    return "must have a host name that can exist: labels of 1 to 63 letters, digits and hyphens"
  }
  if (LOCAL_NAME.test(name)) return "must not name a host of a local or private network"
  // A resolver completes a single label with the machine's search domains, which belong to its own network.
  return labels.length === 1 ? "must have a full host name such as hooks.example.com" : null
}

/** Loopback addresses are not public: they are allowed only if the operator opened them. */
function isLoopbackOpen(addresses: AddressRules): boolean {
  return isAllowed("127.0.0.1", addresses) || isAllowed("::1", addresses)
}
