import { describe, expect, test } from "vitest"
import { parseCidr } from "./addresses.ts"
import { type TargetRules, vetUrl } from "./targets.ts"

const CLOSED: TargetRules = { http: true, ports: "default", addresses: { allow: [], own: ["93.184.215.14"] } }
const opened = (...ranges: string[]): TargetRules => ({
  ...CLOSED,
  addresses: { allow: ranges.map((text) => parseCidr(text, "allow")), own: [] },
})
const LOOPBACK = opened("127.0.0.0/8")

const reason = (url: string, rules = CLOSED) => {
  const check = vetUrl(url, rules)
  return check.ok ? null : check.reason
}

const NOT_A_URL = "must be a full http:// or https:// address"
const USER = "must not carry a user name or password; use headers"
const NOT_PUBLIC =
  "must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it"
const NO_NAME = "must have a host name that can exist: labels of 1 to 63 letters, digits and hyphens"
const ONE_LABEL = "must have a full host name such as hooks.example.com"
const HERE = "must not lead to this machine, unless egress.allow or POSTHORN_EGRESS_ALLOW opens 127.0.0.0/8"
const LOCAL = "must not name a host of a local or private network"

describe("a URL is allowed, in its normalised form:", () => {
  test.each([
    ["https://hooks.example.com/in?a=1", "https://hooks.example.com/in?a=1", false],
    ["http://hooks.example.com", "http://hooks.example.com/", false],
    ["HTTPS://HOOKS.Example.COM:443/", "https://hooks.example.com/", false],
    ["https://hooks.example.com./in", "https://hooks.example.com/in", false],
    ["https://my_hooks.example.com:8443/", "https://my_hooks.example.com:8443/", false],
    ["https://b\u00fccher.example/", "https://xn--bcher-kva.example/", false],
    ["https://localhost.example.com/", "https://localhost.example.com/", false],
    ["https://notlocalhost.local.example/", "https://notlocalhost.local.example/", false],
    ["https://mylocal.example.mylocal/", "https://mylocal.example.mylocal/", false],
    ["https://router.home-arpa/", "https://router.home-arpa/", false],
    ["https://ok.example\\@127.0.0.1/", "https://ok.example/@127.0.0.1/", false],
    ["https://134744072/", "https://8.8.8.8/", true],
    ["https://8.8.8.8:8080/in", "https://8.8.8.8:8080/in", true],
    ["https://[2606:4700:0::1111]/", "https://[2606:4700::1111]/", true],
  ])("%s as %s", (url, href, literal) => {
    const check = vetUrl(url, CLOSED)
    expect(check).toMatchObject({ ok: true, literal })
    expect(check.ok && check.url.href).toBe(href)
  })
})

describe("a URL is refused:", () => {
  test.each([
    ...["", "hooks.example.com/in", "//hooks.example.com", "https://", "https://exa mple.com/"].map(notUrl),
    ...["file:///etc/passwd", "ftp://ok.example/", "gopher://ok.example/", "ws://ok.example/"].map(notUrl),
    ...["data:text/plain,hi", "javascript:1", "https://ok.example:65536/", "https://1.2.3.4.5/"].map(notUrl),
    ...["https://[fe80::1%25eth0]/", "https://[::1/", "https://ok.0x7f/"].map(notUrl),
    ["http://ok.example@127.0.0.1", USER],
    ["https://user:password@ok.example/", USER],
    ["https://:password@ok.example/", USER],
    ["https://ok.example:0/", "must not use port 0"],
    ["https://ok.example:22/", "must not use port 22, which belongs to another service"],
    ["https://ok.example:6379/", "must not use port 6379, which belongs to another service"],
  ])("%s: url %s", (url, expected) => {
    expect(reason(url)).toBe(expected)
  })

  test.each([
    ...["127.0.0.1", "127.1", "0", "0x7f.1", "0177.0.0.1", "2130706433", "①②⑦.⓪.⓪.①", "１２７.０.０.１"],
    ...["[::1]", "[::]", "[::ffff:7f00:1]", "[::7f00:1]", "[::ffff:0:7f00:1]", "[64:ff9b::7f00:1]"],
    ...["[2002:7f00:1::]", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "172.16.0.1", "192.168.0.1"],
    ...["100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255"],
    // The machine's own address: the same sentence, so that it does not reveal itself.
    ...["93.184.215.14", "93.184.215.14."],
  ])("the address %s", (host) => {
    expect(reason(`http://${host}/`)).toBe(NOT_PUBLIC)
  })

  test.each([
    ...["localhost", "localhost.", "LOCALHOST", "%6c%6fcalhost", "loc\u00adalhost", "ｌocalhost"].map(
      (host): [string, string] => [host, HERE],
    ),
    ...["a.localhost", "a.localhost.", "printer.local", "a.b.LOCAL.", "metadata.google.internal"].map(local),
    ...["router.home.arpa", "home.arpa", "receiver.default.svc.cluster.local", "a。local"].map(local),
    ...["intranet", "metadata", "com", "com."].map(oneLabel),
    ...["localhost..", "..localhost", ".localhost", "a..example.com", ".example.com"].map(noName),
    ...["127.0.0.1..", ".", "..", "a*b.example.com", "a'b.example.com"].map(noName),
    ...[`${"a".repeat(64)}.example.com`, `${"a.".repeat(126)}com`].map(noName),
  ])("the name %s: url %s", (host, expected) => {
    expect(reason(`https://${host}/`)).toBe(expected)
  })
})

function notUrl(url: string): [string, string] {
  return [url, NOT_A_URL]
}
function oneLabel(host: string): [string, string] {
  return [host, ONE_LABEL]
}
function local(host: string): [string, string] {
  return [host, LOCAL]
}
function noName(host: string): [string, string] {
  return [host, NO_NAME]
}

test("http is refused if only https is allowed", () => {
  const rules = { ...CLOSED, http: false }
  expect(reason("http://ok.example/", rules)).toBe("must be a full https:// address")
  expect(reason("https://ok.example/", rules)).toBeNull()
})

describe("ports:", () => {
  const refused = (port: number, ports: TargetRules["ports"] = "default") =>
    reason(`http://ok.example:${port}/`, { ...CLOSED, ports }) !== null

  test("below 1024, only 80 and 443 are open", () => {
    const open = Array.from({ length: 1024 }, (_, port) => port).filter((port) => !refused(port))
    expect(open).toEqual([80, 443])
  })

  test("from 1024 on, the well-known services are closed", () => {
    const closed = Array.from({ length: 65_536 - 1024 }, (_, i) => i + 1024).filter((port) => refused(port))
    expect(closed).toEqual([
      1433, 1521, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5060, 5061, 5432, 5671, 5672, 5900, 5984,
      6000, 6379, 6443, 6665, 6666, 6667, 6668, 6669, 6697, 8500, 9042, 9092, 9200, 9300, 10_250, 10_255,
      11_211, 15_672, 26_379, 27_017, 27_018, 27_019,
    ])
    expect(Math.max(...closed), "an ephemeral port").toBeLessThan(32_768)
  })

  test('all but 0 are open with "any"', () => {
    expect([0, 1, 22, 80, 6379, 65_535].filter((port) => refused(port, "any"))).toEqual([0])
  })

  test("only those of a list are open, which holds for 80 and 443 too", () => {
    expect([0, 22, 80, 443, 6379, 8443].filter((port) => !refused(port, [0, 22, 443]))).toEqual([22, 443])
    const rules = { ...CLOSED, ports: [443, 8443] }
    expect(reason("https://ok.example/", rules)).toBeNull()
    expect(reason("http://ok.example/", rules)).toBe("must use one of the ports 443, 8443")
  })

  test("the ports of services stay closed on an address that the operator opened", () => {
    expect(reason("http://127.0.0.1:6379/", LOOPBACK)).toMatch("port 6379")
  })
})

describe("with loopback opened by the operator", () => {
  test.each([
    ["http://127.0.0.1:41234/", "127.0.0.1", true],
    ["http://2130706433/", "127.0.0.1", true],
    ["http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]", true],
    ["http://localhost:41234/", "localhost", false],
    ["http://localhost.:41234/", "localhost", false],
  ])("%s is allowed", (url, hostname, literal) => {
    const check = vetUrl(url, LOOPBACK)
    expect(check).toMatchObject({ ok: true, literal })
    expect(check.ok && check.url.hostname).toBe(hostname)
  })

  test("localhost is allowed if either loopback address is", () => {
    expect(reason("http://localhost/", opened("::1"))).toBeNull()
    expect(reason("http://localhost/", opened("127.0.0.1"))).toBeNull()
    expect(reason("http://localhost/", opened("10.0.0.0/8", "fd00::/8"))).toBe(HERE)
  })

  test.each([
    ["http://[::1]/", NOT_PUBLIC],
    ["http://10.0.0.1/", NOT_PUBLIC],
    ["http://localhost../", NO_NAME],
    ["http://127.0.0.1../", NO_NAME],
    ["http://a.localhost/", LOCAL],
    ["http://printer.local/", LOCAL],
    ["http://intranet/", ONE_LABEL],
    ["http://ok.example@127.0.0.1/", USER],
  ])("%s is still refused", (url, expected) => {
    expect(reason(url, LOOPBACK)).toBe(expected)
  })
})
