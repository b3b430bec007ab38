import { isIP } from "node:net"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type AddressRules, isAllowed, parseCidr } from "./addresses.ts"

const CLOSED: AddressRules = { allow: [], own: [] }
const RUNS = { numRuns: 500 }

const opened = (...ranges: string[]): AddressRules => ({
  allow: ranges.map((text) => parseCidr(text, "allow")),
  own: [],
})

/** The host as `URL` normalises it, without the brackets of IPv6. */
const hostOf = (host: string) => new URL(`http://${host}`).hostname.replace(/^\[(.*)\]$/, "$1")

describe("forbidden addresses are refused in every spelling", () => {
  test.each([
    ["127.0.0.1", ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7F000001", "127.0.0.1."]],
    ["127.0.0.1", ["①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0｡0．1", "%31%32%37.1"]],
    ["0.0.0.0", ["0", "0.0.0.0", "00", "0x0"]],
    ["::1", ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]"]],
    ["::", ["[::]", "[0::0]"]],
    ["::ffff:7f00:1", ["[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:FFFF:7F00:0001]"]],
    ["::7f00:1", ["[::7f00:1]", "[::127.0.0.1]"]],
    ["::ffff:0:7f00:1", ["[::ffff:0:7f00:1]", "[::ffff:0:127.0.0.1]"]],
    ["64:ff9b::7f00:1", ["[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]"]],
    ["2002:7f00:1::", ["[2002:7f00:1::]", "[2002:7F00:0001:0::0]"]],
  ])("%s, written as %j", (address, written) => {
    for (const host of written) expect(hostOf(host)).toBe(address)
    expect(isAllowed(address, CLOSED)).toBe(false)
  })

  test.each([
    ...["fe80::1", "fd00:ec2::254", "64:ff9b:1::7f00:1", "2001:0:7f00:1::", "10.0.0.1", "172.16.0.1"],
    ...["192.168.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1"],
    ...["255.255.255.255"],
  ])("%s", (address) => {
    expect(isAllowed(address, CLOSED)).toBe(false)
  })
})

/** Each forbidden range between its public neighbours; a dash where it has none, "…" for groups of ffff. */
const RANGES = `
  -               0.0.0.0        0.255.255.255    1.0.0.0
  9.255.255.255   10.0.0.0       10.255.255.255   11.0.0.0
  100.63.255.255  100.64.0.0     100.127.255.255  100.128.0.0
  126.255.255.255 127.0.0.0      127.255.255.255  128.0.0.0
  168.63.129.15   168.63.129.16  168.63.129.16    168.63.129.17
  169.253.255.255 169.254.0.0    169.254.255.255  169.255.0.0
  172.15.255.255  172.16.0.0     172.31.255.255   172.32.0.0
  191.255.255.255 192.0.0.0      192.0.0.255      192.0.1.0
  192.0.1.255     192.0.2.0      192.0.2.255      192.0.3.0
  192.88.98.255   192.88.99.0    192.88.99.255    192.88.100.0
  192.167.255.255 192.168.0.0    192.168.255.255  192.169.0.0
  198.17.255.255  198.18.0.0     198.19.255.255   198.20.0.0
  198.51.99.255   198.51.100.0   198.51.100.255   198.51.101.0
  203.0.112.255   203.0.113.0    203.0.113.255    203.0.114.0
  223.255.255.255 224.0.0.0      239.255.255.255  -
  -               240.0.0.0      255.255.255.255  -
  -               ::             1fff:…           2000::
  2000:…          2001::         2001:1ff:…       2001:200::
  2001:db7:…      2001:db8::     2001:db8:…       2001:db9::
  2001:…          2002::         2002:…           2003::
  3ffe:…          3fff::         3fff:fff:…       3fff:1000::
  3fff:…          4000::         …                -`
  .trim()
  .split("\n")
  .map((line) => line.trim().split(/ +/).map(filled) as [string, string, string, string])

function filled(text: string): string {
  const groups = text.split(":")
  return text.replace("…", Array.from({ length: 9 - groups.length }, () => "ffff").join(":"))
}

test.each(RANGES)("%s is allowed, %s to %s refused, %s allowed", (before, first, last, after) => {
  expect(isAllowed(first, CLOSED)).toBe(false)
  expect(isAllowed(last, CLOSED)).toBe(false)
  if (before !== "-") expect(isAllowed(before, CLOSED)).toBe(true)
  if (after !== "-") expect(isAllowed(after, CLOSED)).toBe(true)
})

const number = (dotted: string) => dotted.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
const dotted = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".")
const hex = (value: number) => `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`

const FORBIDDEN = RANGES.filter(([, first]) => first.includes(".")).map(([, first, last]) => ({
  min: number(first),
  max: number(last),
}))
const forbiddenIpv4 = fc.oneof(...FORBIDDEN.map((range) => fc.integer(range)))
const anyIpv4 = fc.integer({ min: 0, max: 0xffff_ffff })
const publicIpv4 = anyIpv4.filter((value) => !FORBIDDEN.some(({ min, max }) => value >= min && value <= max))

/** All the ways in which an IPv4 address can be put into an IPv6 one. */
const disguises = (value: number) => [
  `::ffff:${dotted(value)}`,
  `::FFFF:${hex(value)}`,
  `0:0:0:0:0:ffff:${dotted(value)}`,
  `::${dotted(value)}`,
  `::${hex(value)}`,
  `::ffff:0:${dotted(value)}`,
  `64:ff9b::${dotted(value)}`,
  `64:ff9b::${hex(value)}`,
  `64:ff9b:1::${hex(value)}`,
  `2002:${hex(value)}::`,
  `2002:${hex(value)}::1`,
  `2001:0:${hex(value)}::`,
  `2001::${hex(~value)}`,
]

describe("over all of IPv4", () => {
  test("a forbidden address is refused, also as a number, in octal, in hexadecimal and shortened", () => {
    fc.assert(
      fc.property(forbiddenIpv4, (value) => {
        const [a, b, c, d] = dotted(value).split(".").map(Number)
        const octal = [a, b, c, d].map((part) => `0${part!.toString(8)}`).join(".")
        const short = `${a}.${value & 0xff_ffff}`
        for (const host of [dotted(value), `${value}`, `0x${value.toString(16)}`, octal, short]) {
          expect(hostOf(host)).toBe(dotted(value))
        }
        expect(isAllowed(dotted(value), CLOSED)).toBe(false)
      }),
      RUNS,
    )
  })

  test("a public address is allowed", () => {
    fc.assert(
      fc.property(publicIpv4, (value) => isAllowed(dotted(value), CLOSED)),
      RUNS,
    )
  })

  test("inside IPv6 every address is refused, as it is written and as URL writes it", () => {
    fc.assert(
      fc.property(fc.oneof(forbiddenIpv4, anyIpv4), (value) => {
        for (const disguise of disguises(value)) {
          expect(isIP(disguise), disguise).toBe(6)
          expect(isAllowed(disguise, CLOSED), disguise).toBe(false)
          expect(isAllowed(hostOf(`[${disguise}]`), CLOSED), disguise).toBe(false)
        }
      }),
      RUNS,
    )
  })
})

/** An IPv6 address from its first groups; the rest is free, with zeros often enough to be shortened. */
const beginning = (...groups: readonly (readonly [min: number, max: number])[]) =>
  fc
    .tuple(
      ...groups.map(([min, max]) => fc.integer({ min, max })),
      ...Array.from({ length: 8 - groups.length }, () =>
        fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })),
      ),
    )
    .map((all) => all.map((group) => group.toString(16)))

const forbiddenIpv6 = fc.oneof(
  beginning([0, 0]),
  beginning([0, 0x1fff]),
  beginning([0x2001, 0x2001], [0, 0x1ff]),
  beginning([0x2001, 0x2001], [0xdb8, 0xdb8]),
  beginning([0x2002, 0x2002]),
  beginning([0x3fff, 0x3fff], [0, 0xfff]),
  beginning([0x4000, 0xffff]),
)
const publicIpv6 = fc.oneof(
  beginning([0x2000, 0x2000]),
  beginning([0x2001, 0x2001], [0x200, 0xdb7]),
  beginning([0x2001, 0x2001], [0xdb9, 0xffff]),
  beginning([0x2003, 0x3ffe]),
  beginning([0x3fff, 0x3fff], [0x1000, 0xffff]),
)

function spellings(groups: readonly string[]): string[] {
  const expanded = groups.map((group) => group.padStart(4, "0")).join(":")
  const [high, low] = groups.slice(6).map((group) => Number.parseInt(group, 16))
  const withIpv4 = [...groups.slice(0, 6), dotted(high! * 65_536 + low!)].join(":")
  return [groups.join(":"), expanded, expanded.toUpperCase(), hostOf(`[${expanded}]`), withIpv4]
}

describe("over all of IPv6, short and long, in upper case and with an IPv4 ending", () => {
  test("a forbidden address is refused", () => {
    fc.assert(
      fc.property(forbiddenIpv6, (groups) => {
        for (const text of spellings(groups)) expect(isAllowed(text, CLOSED), text).toBe(false)
      }),
      RUNS,
    )
  })

  test("a public address is allowed", () => {
    fc.assert(
      fc.property(publicIpv6, (groups) => {
        for (const text of spellings(groups)) expect(isAllowed(text, CLOSED), text).toBe(true)
      }),
      RUNS,
    )
  })
})

describe("a text that is no plain address is refused, even if every range is open", () => {
  const everything = opened("0.0.0.0/0", "::/0")

  test.each([
    ...["", " ", "8.8.8.8 ", "8.8.8", "08.8.8.8", "8.8.8.8.8", "256.8.8.8", "0x8.8.8.8", "134744072"],
    ...["8.8.8.8:80", "8.8.8.8/32", "8.8.8.8%eth0", "::ffff:08.8.8.8", "::ffff:8.8.8.8%1", "example.com"],
    ...["[2606::1]", "2606::1%eth0", "2606::1%25eth0", "2606:::1", "2606::1::1", "2606:1", "26060::1"],
    ...["1:2:3:4:5:6:7:8:9", "1::2:3:4:5:6:7:8", "2606::g", "８.8.8.8"],
  ])("%j", (text) => {
    expect(isAllowed(text, everything)).toBe(false)
  })

  test("undefined is refused, such as the address of a closed socket", () => {
    expect(isAllowed(undefined as unknown as string, everything)).toBe(false)
  })

  test("no text makes it throw", () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."0123456789abf.:%/") }))
    fc.assert(
      fc.property(text, (any) => isAllowed(any, everything) === (isIP(any) !== 0 && !any.includes("%"))),
    )
  })
})

describe("a range that the operator opened", () => {
  test.each([
    ["127.0.0.0/8", "127.0.0.1", true],
    ["127.0.0.0/8", "::ffff:127.0.0.1", true],
    ["127.0.0.0/8", "::ffff:7f00:1", true],
    ["127.0.0.0/8", "::127.0.0.1", false],
    ["127.0.0.0/8", "64:ff9b::127.0.0.1", false],
    ["127.0.0.0/8", "2002:7f00:1::", false],
    ["127.0.0.0/8", "::1", false],
    ["127.0.0.0/8", "10.0.0.1", false],
    ["::1", "::1", true],
    ["::1/128", "0:0:0:0:0:0:0:1", true],
    ["::1", "::2", false],
    ["::1", "127.0.0.1", false],
    ["10.1.2.3", "10.1.2.3", true],
    ["10.1.2.3", "10.1.2.4", false],
    ["172.16.0.0/12", "172.31.255.255", true],
    ["fd00::/8", "FD00:EC2::254", true],
    ["fd00::/8", "fe80::1", false],
    ["64:ff9b::/96", "64:ff9b::808:808", true],
    ["0.0.0.0/0", "169.254.169.254", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "fe80::1", true],
    ["::/0", "127.0.0.1", false],
    ["::/0", "::ffff:127.0.0.1", false],
  ])("%s, and %s: %j", (range, address, allowed) => {
    expect(isAllowed(address, opened("198.18.7.0/24", range))).toBe(allowed)
  })

  test("opens exactly its own addresses, at every length of the prefix", () => {
    fc.assert(
      fc.property(fc.integer({ min: 8, max: 32 }), fc.nat(0xff_ffff), fc.nat(0xff_ffff), (prefix, a, b) => {
        const size = 2 ** (32 - prefix)
        const [inside, other] = [a, b].map((low) => number("10.0.0.0") + low) as [number, number]
        const first = inside - (inside % size)
        const rules = opened(`${dotted(first)}/${prefix}`)
        expect(isAllowed(dotted(inside), rules)).toBe(true)
        expect(isAllowed(dotted(other), rules)).toBe(other >= first && other < first + size)
      }),
      RUNS,
    )
  })
})

describe("the machine's own addresses", () => {
  const own = ["127.0.0.1", "93.184.215.14", "2606:2800:21F:0:0::14", "::93.184.215.15", "fe80::1%eth0"]

  test.each([
    ["93.184.215.14", false],
    ["93.184.215.15", true],
    ["2606:2800:21f::14", false],
    ["2606:2800:021f:0000:0000:0000:0000:0014", false],
    ["2606:2800:21f::15", true],
  ])("%s: %j", (address, allowed) => {
    expect(isAllowed(address, { allow: [], own })).toBe(allowed)
  })

  test("are allowed if an opened range covers them", () => {
    const { allow } = opened("93.184.215.14", "2606:2800::/32")
    expect(isAllowed("93.184.215.14", { allow, own })).toBe(true)
    expect(isAllowed("2606:2800:21f::14", { allow, own })).toBe(true)
  })
})

describe("an invalid range is refused", () => {
  const JUNK = "must be an IP address or a range such as 10.0.0.0/8 (no zone id), not "

  test.each([
    ...["", "/8", "*", "localhost", "10/8", " 10.0.0.0/8", "10.0.0.0 / 8", "10.0.0.0/", "10.0.0.0/+8"],
    ...["10.0.0.0/08", "10.0.0.0/8.0", "10.0.0.0/255.0.0.0", "10.0.0.0/8/8", "010.0.0.0/8", "0x0a000000/8"],
    ...["[::1]/128", "fe80::%eth0/64", "fe80::1%eth0", "::1\n", "10.0.0.0/-1"],
  ])("%j: no range", (text) => {
    expect(() => parseCidr(text, "allow")).toThrow(JUNK + JSON.stringify(text))
  })

  test.each([
    ["10.0.0.0/33", "longer than the 32 bits"],
    ["::1/129", "longer than the 128 bits"],
    ["::ffff:10.0.0.0/104", "must be written as IPv4"],
    ["::ffff:0:0/96", "must be written as IPv4"],
    ["::ffff:10.0.0.1", "must be written as IPv4"],
    ["10.1.2.3/8", "must begin at the first address of its range (or end in /32 for one)"],
    ["10.0.0.1/31", "must begin at the first address of its range (or end in /32 for one)"],
    ["1.0.0.0/0", "must begin at the first address of its range (or end in /32 for one)"],
    ["fd00::1/8", "must begin at the first address of its range (or end in /128 for one)"],
  ])("%s: %s", (text, problem) => {
    expect(() => parseCidr(text, "allow")).toThrow(problem)
  })

  test("with an error that names the field", () => {
    const named = expect.objectContaining({ code: "invalid_input", field: "POSTHORN_EGRESS_ALLOW" })
    for (const text of ["junk", "10.0.0.0/33", "::ffff:10.0.0.1", "10.1.2.3/8"]) {
      expect(() => parseCidr(text, "POSTHORN_EGRESS_ALLOW")).toThrow(named)
    }
  })
})
