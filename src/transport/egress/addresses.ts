/** Which IP addresses a request may go to. Pure; checked before every new connection. */
import { isIP } from "node:net"
import { invalid } from "../../core/errors.ts"

interface Address {
  readonly family: 4 | 6
  readonly value: bigint
}

/** A range of addresses of one family, both ends included. */
export interface Cidr {
  readonly family: 4 | 6
  readonly first: bigint
  readonly last: bigint
}

export interface AddressRules {
  /** Ranges that the operator opened; they win over every other rule. */
  readonly allow: readonly Cidr[]
  /** The machine's own interface addresses, in any spelling: a public one of them is this machine too. */
  readonly own: readonly string[]
}

const BITS = { 4: 32, 6: 128 } as const

// Not net.BlockList: it says "not blocked" for a wrong family, a zone id and malformed text, and it misses IPv4 addresses inside IPv6
// ones. Here an address that cannot be parsed is refused.

const FORBIDDEN_IPV4 = [
  "0.0.0.0/8", // "this network"; Linux connects 0.0.0.0 to loopback
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT; Alibaba's metadata at 100.100.100.200
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local; the clouds' metadata at 169.254.169.254
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments; Oracle's metadata at 192.0.0.192
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
  "168.63.129.16", // Azure's host agent: a public address that never leaves the host
].map(range)

/**
 * The range that IANA assigns for global routing. All other addresses are refused, and with them the forms that hide an IPv4 address:
 * mapped (::ffff:0:0/96), compatible (::/96), translated (::ffff:0:0:0/96) and NAT64 (64:ff9b::/96, 64:ff9b:1::/48).
 */
const GLOBAL_IPV6 = range("2000::/3")
const FORBIDDEN_IPV6 = [
  "2001::/23", // protocol assignments; Teredo, which hides an IPv4 address
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, which hides an IPv4 address
  "3fff::/20", // documentation
].map(range)

/** Whether a connection to this address may be opened; anything but a plain IP address is refused. */
export function isAllowed(address: string, rules: AddressRules): boolean {
  const parsed = parseAddress(address)
  if (parsed === null) return false
  // The system connects ::ffff:10.0.0.1 over IPv4, so the operator's IPv4 ranges apply to it.
  const connected = mappedIpv4(parsed) ?? parsed
  if (rules.allow.some((open) => covers(open, connected))) return true
  return isPublic(parsed) && !rules.own.some((own) => isSame(parseAddress(own), parsed))
}

function isPublic(address: Address): boolean {
  if (address.family === 4) return !FORBIDDEN_IPV4.some((forbidden) => covers(forbidden, address))
  return covers(GLOBAL_IPV6, address) && !FORBIDDEN_IPV6.some((forbidden) => covers(forbidden, address))
}

/**
 * Parses a range that an operator wrote: "10.0.0.0/8", "fd00::/8", or one address. A range with bits set behind its prefix is refused,
 * not rounded down: 10.1.2.3/8 may mean one machine, and would open 16 million addresses.
 */
export function parseCidr(text: string, field: string): Cidr {
  const [, host = "", length] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const address = parseAddress(host)
  if (address === null) {
    const given = JSON.stringify(text)
    throw invalid(field, `must be an IP address or a range such as 10.0.0.0/8 (no zone id), not ${given}`)
  }
  const bits = BITS[address.family]
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) throw invalid(field, `has a prefix longer than the ${bits} bits of an address: ${text}`)
  // A mapped range would match nothing: mapped addresses are checked as IPv4.
  if (mappedIpv4(address) !== null) throw invalid(field, `must be written as IPv4, not in IPv6 form: ${text}`)
  const rest = (1n << BigInt(bits - prefix)) - 1n
  if ((address.value & rest) !== 0n) {
    throw invalid(field, `must begin at the first address of its range (or end in /${bits} for one): ${text}`)
  }
  return { family: address.family, first: address.value, last: address.value | rest }
}

function range(text: string): Cidr {
  return parseCidr(text, "range")
}

function covers({ family, first, last }: Cidr, address: Address): boolean {
  return family === address.family && first <= address.value && address.value <= last
}

function isSame(a: Address | null, b: Address): boolean {
  return a !== null && a.family === b.family && a.value === b.value
}

function mappedIpv4({ family, value }: Address): Address | null {
  return family === 6 && value >> 32n === 0xffffn ? { family: 4, value: value & 0xffff_ffffn } : null
}

function parseAddress(text: string): Address | null {
  const family = isIP(text)
  // isIP accepts a zone id ("fe80::1%eth0"), which chooses an interface of this machine.
  if (family === 0 || text.includes("%")) return null
  return family === 4 ? { family, value: ipv4Value(text) } : { family: 6, value: ipv6Value(text) }
}

/** `text` passed isIP: four decimal numbers. isIP refuses octal, hexadecimal and shortened forms. */
function ipv4Value(text: string): bigint {
  return text.split(".").reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
}

/** `text` passed isIP: at most one "::", and perhaps an IPv4 address for the last two groups. */
function ipv6Value(text: string): bigint {
  const lastGroup = text.lastIndexOf(":") + 1
  if (text.includes(".")) {
    return ipv6Value(`${text.slice(0, lastGroup)}0:0`) | ipv4Value(text.slice(lastGroup))
  }
  const [head = [], tail = []] = text.split("::").map((side) => (side === "" ? [] : side.split(":")))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0")
  return [...head, ...zeros, ...tail].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n)
}
