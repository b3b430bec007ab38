/** An explicit proxy: everything goes through it, to addresses that were vetted here, and nothing else reaches it. */
import type { Socket } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import { parseEgress } from "../../src/transport/egress/settings.ts"
import { DnsServer } from "../support/dns-server.ts"
import { Harness } from "../support/harness.ts"
import { Canary, OPEN } from "./canary.ts"
import { Authority } from "./certificates.ts"
import { outcomes } from "./planted.ts"
import { Site } from "./site.ts"
import { TunnelProxy } from "./tunnel.ts"

const NAME = "hooks.example.com"

const DEAD = "127.0.0.3"

async function behind(proxy: string, addresses = [OPEN]): Promise<Harness> {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  dns.answer(NAME, { a: addresses })
  dns.answer("inside.example.com", { a: ["127.0.0.1"] })
  const allow = addresses.map((address) => `${address}/32`)
  return Harness.start({ egress: { allow, dns: [dns.address], ports: "any", proxy } })
}

test("an http target is reached through a tunnel to its vetted address, with its own Host", async () => {
  const proxy = await TunnelProxy.start()
  const site = await Site.start()
  const harness = await behind(proxy.url())
  await harness.endpoint({ url: site.url("/hook?a=b", NAME) })
  await harness.send({ n: 1 })
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([
    { error: null, response_status: 200 },
  ])
  expect(proxy.asked).toMatchObject([{ target: `${OPEN}:${site.port}` }])
  expect(proxy.asked[0]?.head).not.toContain(NAME)
  expect(site.visits).toMatchObject([
    { path: "/hook?a=b", body: '{"n":1}', headers: { host: `${NAME}:${site.port}` } },
  ])
})

test("an https target is verified by its name through the tunnel", async () => {
  const authority = new Authority()
  const proxy = await TunnelProxy.start()
  const site = await Site.start({ tls: authority.certificate("x", { names: `DNS:${NAME}` }) })
  const other = await Site.start({ tls: authority.certificate("x", { names: "DNS:example.org" }) })
  const harness = await behind(proxy.url())
  const tls = { ca: authority.cert }
  const good = await harness.endpoint({ url: site.url("/", NAME), tls })
  await harness.endpoint({ url: other.url("/", NAME), tls })
  await harness.send()
  const attempts = await harness.published("delivery.attempt", 2)
  const errors = attempts.map(({ webhook_id, error }) => [webhook_id === good, error])
  expect(errors.sort()).toEqual([
    [false, "tls_error"],
    [true, null],
  ])
  expect(site.visits).toMatchObject([{ servername: NAME }])
  expect(other.visits).toEqual([])
  expect(proxy.asked.map(({ target }) => target).sort()).toEqual(
    [`${OPEN}:${site.port}`, `${OPEN}:${other.port}`].sort(),
  )
})

test("a forbidden target never reaches the proxy", async () => {
  const canary = await Canary.start()
  const proxy = await TunnelProxy.start()
  const site = await Site.start()
  const urls = ["127.0.0.1", "[::1]", "localhost", "169.254.169.254", "inside.example.com"].flatMap(
    (host) => [canary.url(host), canary.url(host).replace("http:", "https:")],
  )
  const harness = await behind(proxy.url())
  const errors = Object.values(await outcomes(harness, site, urls))
  expect(errors).toEqual(new Array(urls.length).fill("target_forbidden"))
  expect(proxy.connections).toBe(0)
})

test("the proxy gets its own login and the receiver does not see it", async () => {
  const proxy = await TunnelProxy.start()
  const site = await Site.start()
  const harness = await behind(proxy.url("us%65r:p%40ss@"))
  await harness.endpoint({ url: site.url() })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect(proxy.asked[0]?.head).toContain(`\r\nproxy-authorization: Basic ${btoa("user:p@ss")}\r\n`)
  expect(site.visits[0]?.headers).not.toHaveProperty("proxy-authorization")
})

test("tokens are fetched through it too", async () => {
  const proxy = await TunnelProxy.start()
  const site = await Site.start()
  site.answer = (_visit, response) => void response.end('{"access_token":"t"}')
  const tokenSite = {
    type: "oauth2",
    tokenUrl: site.url("/token"),
    clientId: "a",
    clientSecret: "b",
  } as const
  const harness = await behind(proxy.url())
  await harness.endpoint({ url: site.url(), auth: tokenSite })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect(site.visits.map(({ path }) => path)).toEqual(["/token", "/"])
  expect(site.connections).toBe(proxy.asked.length)
})

test("a proxy at an IPv6 address is found", async () => {
  const proxy = await TunnelProxy.start("::1")
  const site = await Site.start()
  const harness = await behind(proxy.url())
  await harness.endpoint({ url: site.url() })
  await harness.send()
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: null }])
})

describe("a proxy that fails fails the attempt, and the next one is made anew", () => {
  const FAILS: { readonly [what: string]: (socket: Socket) => void } = {
    "refuses with 403": (socket) => void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"),
    "asks for a login": (socket) =>
      void socket.end("HTTP/1.1 407 Login\r\nproxy-authenticate: Basic\r\n\r\n"),
    "talks nonsense": (socket) => void socket.end("220 mail.example ESMTP\r\n\r\n"),
    "talks nonsense without end": (socket) => void socket.write("x".repeat(100_000)),
    "hangs up": (socket) => void socket.end(),
    "resets the connection": (socket) => void socket.resetAndDestroy(),
    "answers half and hangs up": (socket) => void socket.end("HTTP/1.1 200 OK\r\n"),
  }

  test.each(Object.keys(FAILS))("a proxy that %s", async (what) => {
    const proxy = await TunnelProxy.start()
    const good = proxy.reply
    proxy.reply = FAILS[what]!
    const site = await Site.start()
    const harness = await behind(proxy.url())
    await harness.endpoint({ url: site.url(), retry: "jobs" })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: "network_error", response_status: null },
    ])
    expect(site.connections).toBe(0)
    proxy.reply = good
    expect(await harness.attemptAfter(1000)).toMatchObject({ error: null, response_status: 200 })
  })

  test("a proxy that cannot be reached", async () => {
    const site = await Site.start()
    const harness = await behind("http://127.0.0.1:1")
    await harness.endpoint({ url: site.url() })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "network_error" }])
  })

  test("a proxy that hangs is cut at the attempt's deadline", async () => {
    const proxy = await TunnelProxy.start()
    proxy.reply = () => {}
    const site = await Site.start()
    const harness = await behind(proxy.url())
    await harness.endpoint({ url: site.url(), retry: { delays: [10], maxAttempts: 2, timeout: 3 } })
    await harness.send()
    await proxy.askedFor(1)
    harness.clock.advance(3000)
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "timeout" }])
  })

  test("a proxy that hangs is given up when the connect timeout is over", async () => {
    const proxy = await TunnelProxy.start()
    proxy.reply = () => {}
    const site = await Site.start()
    const harness = await behind(proxy.url())
    await harness.endpoint({ url: site.url(), retry: { delays: [10], maxAttempts: 2, connectTimeout: 0.2 } })
    await harness.send()
    await proxy.askedFor(1)
    harness.clock.advance(200)
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: "timeout", duration_ms: 200 },
    ])
  })
})

describe("a name with several addresses", () => {
  const asIfDead: { readonly [what: string]: (socket: Socket) => void } = {
    "cannot reach": (socket) => void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"),
    "hangs up on": (socket) => void socket.destroy(),
  }

  /** At every attempt the first address is drawn by chance: the proxy finds the one that is asked for first to be dead. */
  function firstIsDead(proxy: TunnelProxy, die: (socket: Socket) => void): void {
    const good = proxy.reply
    proxy.reply = (socket, target) => {
      if (proxy.asked.length === 1) return die(socket)
      good(socket, target.replace(DEAD, OPEN))
    }
  }
  const askedFor = (proxy: TunnelProxy) => proxy.asked.map(({ target }) => target.split(":")[0]).sort()

  test.each(Object.keys(asIfDead))("is reached at the next one when the proxy %s the first", async (what) => {
    const proxy = await TunnelProxy.start()
    const site = await Site.start()
    firstIsDead(proxy, asIfDead[what]!)
    const harness = await behind(proxy.url(), [OPEN, DEAD])
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: null, response_status: 200 },
    ])
    expect(askedFor(proxy)).toEqual([OPEN, DEAD])
  })

  test("over TLS too", async () => {
    const authority = new Authority()
    const proxy = await TunnelProxy.start()
    const site = await Site.start({ tls: authority.certificate("x", { names: `DNS:${NAME}` }) })
    firstIsDead(proxy, asIfDead["hangs up on"]!)
    const harness = await behind(proxy.url(), [OPEN, DEAD])
    await harness.endpoint({ url: site.url("/", NAME), tls: { ca: authority.cert } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: null }])
  })

  test("is reached within the connect timeout when the proxy waits for the first in vain", async () => {
    const proxy = await TunnelProxy.start()
    const site = await Site.start()
    firstIsDead(proxy, () => {})
    const harness = await behind(proxy.url(), [OPEN, DEAD])
    await harness.endpoint({
      url: site.url("/", NAME),
      retry: { delays: [10], maxAttempts: 2, connectTimeout: 8 },
    })
    await harness.send()
    await proxy.askedFor(1)
    harness.clock.advance(4000)
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: null }])
  })

  test("has one connect timeout for all of them", async () => {
    const proxy = await TunnelProxy.start()
    proxy.reply = () => {}
    const site = await Site.start()
    const harness = await behind(proxy.url(), [OPEN, DEAD])
    await harness.endpoint({
      url: site.url("/", NAME),
      retry: { delays: [10], maxAttempts: 2, connectTimeout: 8 },
    })
    await harness.send()
    await proxy.askedFor(1)
    harness.clock.advance(4000)
    await proxy.askedFor(2)
    harness.clock.advance(4000)
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: "timeout", duration_ms: 8000 },
    ])
  })

  test("is asked for once where the proxy itself refuses us", async () => {
    const proxy = await TunnelProxy.start()
    proxy.reply = (socket) => void socket.end("HTTP/1.1 407 Login\r\n\r\n")
    const site = await Site.start()
    const harness = await behind(proxy.url(), [OPEN, DEAD])
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "network_error" }])
    expect(proxy.connections).toBe(1)
  })
})

describe("the setting", () => {
  test.each([
    "http://proxy.example:80",
    "http://proxy.example:3128",
    "http://u:p@10.0.0.1:8080",
  ])("%s is a proxy", (proxy) => {
    expect(parseEgress({ proxy }).proxy?.hostname).toBe(new URL(proxy).hostname)
  })

  test.each([
    "https://proxy.example:3128",
    "socks5://proxy.example:1080",
    "proxy.example:3128",
    "http://%E0%A4%A:p@proxy.example:3128",
    "http://u:%FF@proxy.example:3128",
    "",
    "x",
  ])("%j is none", (proxy) => {
    const refusal = expect.objectContaining({ code: "invalid_input", field: "egress.proxy" })
    expect(() => parseEgress({ proxy })).toThrow(refusal)
  })
})
