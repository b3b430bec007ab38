/** TLS as it is really spoken: whom an endpoint trusts, what it shows, and that nothing is said to anyone else. */
import { connect, type SecureVersion } from "node:tls"
import { describe, expect, onTestFinished, test } from "vitest"
import { Remote } from "../faults/remote.ts"
import { DnsServer } from "../support/dns-server.ts"
import { Harness, temporaryFolder } from "../support/harness.ts"
import { Recorder } from "../support/recorder.ts"
import { OPEN } from "./canary.ts"
import { Authority, type Certificate } from "./certificates.ts"
import { Site } from "./site.ts"

const NAME = "hooks.example.com"
const JUNK = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
const OLD = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const

/** A harness that finds the name at the open address. */
async function named(tracing = new Recorder()): Promise<Harness> {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  dns.answer(NAME, { a: [OPEN] })
  return Harness.start({
    tracer: tracing,
    egress: { allow: [`${OPEN}/32`], dns: [dns.address], ports: "any" },
  })
}

test("a certificate of the endpoint's own authority is trusted; the name is in SNI and Host, the socket goes to the address", async () => {
  const authority = new Authority()
  const site = await Site.start({ tls: authority.certificate("x", { names: `DNS:${NAME}` }) })
  const tracing = new Recorder()
  const harness = await named(tracing)
  await harness.endpoint({ url: site.url("/hook", NAME), tls: { ca: authority.cert } })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect(site.visits).toMatchObject([
    { path: "/hook", servername: NAME, localAddress: OPEN, headers: { host: `${NAME}:${site.port}` } },
  ])
  expect(tracing.of("mark")).toEqual([["resolved"], ["connected"], ["secured"], ["first_byte"]])
  const { data } = await harness.posthorn.attempts.list()
  const ms = expect.any(Number)
  expect(data).toMatchObject([{ timing: { dnsMs: ms, connectMs: ms, tlsMs: ms, firstByteMs: ms } }])
})

test("of several authorities, with words between them, each is trusted", async () => {
  const authorities = [new Authority(), new Authority()]
  const ca = authorities.map(({ cert }, i) => `Authority ${i}:\n${cert}`).join("\n")
  const harness = await named()
  for (const authority of authorities) {
    const site = await Site.start({ tls: authority.certificate("x", { names: `DNS:${NAME}` }) })
    await harness.endpoint({ url: site.url("/", NAME), tls: { ca } })
  }
  await harness.send()
  await harness.published("delivery.delivered", 2)
})

test("a certificate for an address is trusted for that address", async () => {
  const authority = new Authority()
  const site = await Site.start({ tls: authority.certificate("x", { names: `IP:${OPEN}` }) })
  const harness = await named()
  await harness.endpoint({ url: site.url(), tls: { ca: authority.cert } })
  await harness.send()
  await harness.published("delivery.delivered", 1)
  expect(site.visits).toMatchObject([{ servername: null }])
})

test("a name with a dot at its end is asked for in SNI, and looked for in the certificate, without it", async () => {
  const authority = new Authority()
  const site = await Site.start({ tls: authority.certificate("x", { names: `DNS:${NAME}` }) })
  const harness = await named()
  await harness.endpoint({ url: site.url("/", `${NAME}.`), tls: { ca: authority.cert } })
  await harness.send()
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: null }])
  expect(site.visits).toMatchObject([{ servername: NAME }])
})

describe("a receiver that cannot be trusted is told nothing", () => {
  const good = { names: `DNS:${NAME}` }
  const KINDS: { readonly [kind: string]: (authority: Authority) => Certificate } = {
    "an expired certificate": (authority) => authority.certificate("x", { ...good, expired: true }),
    "a certificate for another name": (authority) =>
      authority.certificate(NAME, { names: "DNS:example.org" }),
    "a certificate for its address alone": (authority) => authority.certificate("x", { names: `IP:${OPEN}` }),
    "a self-signed certificate": (authority) => authority.selfSigned(NAME, good.names),
    "a certificate of an unknown authority": () => new Authority().certificate(NAME, good),
  }

  test.each(Object.keys(KINDS))("%s", async (kind) => {
    const authority = new Authority()
    const site = await Site.start({ tls: KINDS[kind]!(authority) })
    const harness = await named()
    await harness.endpoint({ url: site.url("/", NAME), tls: { ca: authority.cert } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([
      { error: "tls_error", response_status: null },
    ])
    expect(site.connections).toBeGreaterThan(0)
    expect(site.visits).toEqual([])
    const { data } = await harness.posthorn.attempts.list()
    expect(data).toMatchObject([{ responseStatus: null, responseBody: null }])
  })

  test("a certificate of a private authority, for an endpoint that trusts the public ones", async () => {
    const authority = new Authority()
    const site = await Site.start({ tls: authority.certificate("x", good) })
    const harness = await named()
    await harness.endpoint({ url: site.url("/", NAME) })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "tls_error" }])
    expect(site.visits).toEqual([])
  })

  test("no TLS at all", async () => {
    const site = await Site.start()
    const harness = await named()
    await harness.endpoint({ url: site.url("/", NAME).replace("http:", "https:") })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "tls_error" }])
    expect(site.visits).toEqual([])
  })

  test("TLS 1.1 and nothing newer", async () => {
    const authority = new Authority()
    const site = await Site.start({ tls: { ...authority.certificate("x", good), ...OLD } })
    expect(await spoken(site.port, { ...OLD, ca: authority.cert })).toBe("TLSv1.1")
    const harness = await named()
    await harness.endpoint({ url: site.url("/", NAME), tls: { ca: authority.cert } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "tls_error" }])
    expect(site.visits).toEqual([])
  })

  /** The outcome of a delivery from another process to this site's address. */
  async function outcomeWith(variable: string, site: Site, ca?: string): Promise<unknown> {
    const remote = Remote.start(["env", variable])
    const store = `sqlite:${temporaryFolder()}/posthorn.db`
    await remote.open({ store, logger: "silent", egress: { allow: [`${OPEN}/32`] } })
    await remote.posthorn.applications.create({ uid: "acme", name: "Acme" })
    await remote.posthorn.endpoints.create("acme", { url: site.url(), tls: ca === undefined ? null : { ca } })
    await remote.posthorn.send("acme", { eventType: "a.b", payload: {} })
    await remote.published("delivery.attempt", 1)
    const event = remote.events.find(({ type }) => type === "delivery.attempt")
    return event?.type === "delivery.attempt" ? event.error : undefined
  }

  test("NODE_TLS_REJECT_UNAUTHORIZED=0 does not change that", async () => {
    const site = await Site.start({ tls: new Authority().selfSigned("x", `IP:${OPEN}`) })
    expect(await outcomeWith("NODE_TLS_REJECT_UNAUTHORIZED=0", site)).toBe("tls_error")
    expect(site.visits).toEqual([])
  })

  test("nor does a Node that was told to speak TLS 1.1", async () => {
    const authority = new Authority()
    const certificate = authority.certificate("x", { names: `IP:${OPEN}` })
    const site = await Site.start({ tls: { ...certificate, ...OLD } })
    const told = "NODE_OPTIONS=--tls-min-v1.0 --tls-cipher-list=DEFAULT@SECLEVEL=0"
    expect(await outcomeWith(told, site, authority.cert)).toBe("tls_error")
    expect(site.visits).toEqual([])
  })
})

/** That the old server really speaks, to a client that lets it. */
function spoken(port: number, options: { ca: string; minVersion: SecureVersion; ciphers: string }) {
  return new Promise<string | null>((resolve, reject) => {
    const socket = connect({ host: OPEN, port, servername: NAME, ...options }, () => {
      resolve(socket.getProtocol())
      socket.destroy()
    }).on("error", reject)
  })
}

describe("a receiver that asks for a client certificate", () => {
  async function strict(authority: Authority): Promise<Site> {
    const asks = { requestCert: true, rejectUnauthorized: true, ca: authority.cert }
    return Site.start({ tls: { ...authority.certificate("x", { names: `DNS:${NAME}` }), ...asks } })
  }

  test("gets the endpoint's, and is delivered to", async () => {
    const authority = new Authority()
    const site = await strict(authority)
    const client = authority.certificate("acme", { names: "DNS:acme.example" })
    const harness = await named()
    await harness.endpoint({ url: site.url("/", NAME), tls: { ...client, ca: authority.cert } })
    await harness.send()
    expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: null }])
    expect(site.visits).toMatchObject([{ client: "acme" }])
  })

  test("gets nothing from an endpoint without one, until the endpoint has one", async () => {
    const authority = new Authority()
    const site = await strict(authority)
    const harness = await named()
    const url = site.url("/", NAME)
    const id = await harness.endpoint({ url, tls: { ca: authority.cert }, retry: "jobs" })
    await harness.send()
    const [refused] = await harness.published("delivery.attempt", 1)
    // In TLS 1.3 the refusal comes after our side is done with the handshake; the connection's end may overtake its alert.
    expect(["tls_error", "connection_reset"]).toContain(refused?.error)
    expect(site.visits).toEqual([])
    const client = authority.certificate("acme", { names: "DNS:acme.example" })
    await harness.posthorn.endpoints.update("acme", id, { tls: { ...client, ca: authority.cert } })
    expect(await harness.attemptAfter(1000)).toMatchObject({ error: null })
    expect(site.visits).toMatchObject([{ client: "acme" }])
  })
})

describe("certificates that cannot be meant are refused with the name of the field", () => {
  const cases: { readonly [what: string]: [string, (authority: Authority) => object] } = {
    "a key of another certificate": [
      "tls.key",
      (authority) => ({
        cert: authority.certificate("a", { names: "DNS:a.example" }).cert,
        key: authority.certificate("b", { names: "DNS:b.example" }).key,
      }),
    ],
    "a certificate without its key": ["tls.key", (authority) => ({ cert: authority.cert })],
    "a key without its certificate": [
      "tls.key",
      (authority) => ({ key: authority.selfSigned("a", "DNS:a.b").key }),
    ],
    "no certificate": ["tls.cert", (authority) => ({ ...authority.selfSigned("a", "DNS:a.b"), cert: "PEM" })],
    "no key": ["tls.key", (authority) => ({ ...authority.selfSigned("a", "DNS:a.b"), key: "PEM" })],
    "no authority": ["tls.ca", () => ({ ca: JUNK })],
    "junk behind an authority": ["tls.ca", (authority) => ({ ca: authority.cert + JUNK })],
    "junk before an authority": ["tls.ca", (authority) => ({ ca: JUNK + authority.cert })],
    "half an authority behind a whole one": [
      "tls.ca",
      (authority) => ({ ca: authority.cert + authority.cert.slice(0, 200) }),
    ],
    "a key among the authorities": [
      "tls.ca",
      (authority) => ({ ca: authority.cert + authority.selfSigned("a", "DNS:a.b").key }),
    ],
    "a chain that breaks off in junk": [
      "tls",
      (authority) => {
        const { cert, key } = authority.selfSigned("a", "DNS:a.b")
        return { cert: cert + JUNK, key }
      },
    ],
    "a number": ["tls.ca", () => ({ ca: 7 })],
    "an option that there is not": ["tls.rejectUnauthorized", () => ({ rejectUnauthorized: false })],
  }

  test.each(Object.keys(cases))("%s", async (what) => {
    const [field, make] = cases[what]!
    const harness = await Harness.start()
    const tls = make(new Authority())
    await expect(harness.endpoint({ tls })).rejects.toMatchObject({ code: "invalid_input", field })
    expect(await harness.sql("SELECT id FROM endpoints")).toEqual([])
  })
})
