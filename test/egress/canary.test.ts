/** Fault 22: every address and URL case of the egress list, with a canary that stays untouched. */
import { describe, expect, test } from "vitest"
import { Harness } from "../support/harness.ts"
import { Canary, interfaceHosts, OPEN } from "./canary.ts"
import { all, outcomes, plant } from "./planted.ts"
import { Site } from "./site.ts"

const LITERALS = [
  ...["127.0.0.1", "127.1", "0", "0x7f.1", "0177.0.0.1", "2130706433", "①②⑦.⓪.⓪.①", "１２７.０.０.１"],
  ...["localhost", "localhost.", "[::1]", "[::]", "[::ffff:7f00:1]", "[::7f00:1]", "[::ffff:0:7f00:1]"],
  ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "172.16.0.1"],
  ...["192.168.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1"],
  ...["255.255.255.255", "127.0.0.1.", "127.0.0.3", "printer", "api.localhost", "nas.local", "db.internal"],
  ...interfaceHosts(),
]

/** Each over both schemes and on the canary's own port, where a connection would be seen. */
const literalUrls = ({ port }: Canary) =>
  LITERALS.flatMap((host) => [`http://${host}:${port}/`, `https://${host}:${port}/`])

const URLS: { readonly [what: string]: (port: number) => string } = {
  "user info before a closed address": (port) => `http://ok.example@127.0.0.1:${port}/`,
  "user info and a password": (port) => `http://ok.example:80@127.0.0.1:${port}/`,
  "backslashes for slashes": (port) => `http:\\\\127.0.0.1:${port}\\@ok.example/`,
  "tabs and line breaks": (port) => `ht\ntp://127.0.\t0.1:${port}/`,
  "an escaped host": (port) => `http://%31%32%37.0.0.1:${port}/`,
  "port 0": () => `http://${OPEN}:0/`,
  "the port of SSH": () => `http://${OPEN}:22/`,
  "the port of Redis": () => `http://${OPEN}:6379/`,
  "a file": () => "file:///etc/passwd",
  "another protocol": (port) => `gopher://127.0.0.1:${port}/_x`,
  "no URL at all": () => "127.0.0.1",
}

const guarded = () => Harness.start({ egress: { allow: [`${OPEN}/32`] } })
const endpoints = (harness: Harness) => harness.sql("SELECT url, version, secrets FROM endpoints")

test("the canary is reached where its address is open", async () => {
  const canary = await Canary.start(2)
  const site = await Site.start()
  const harness = await Harness.start({ egress: { allow: ["127.0.0.0/8", "::1"] } })
  const urls = [canary.url("127.0.0.1"), canary.url("[::1]")]
  expect(await outcomes(harness, site, urls)).toEqual(all(urls, null))
})

describe("a closed target", () => {
  test("is refused for a new endpoint and for a changed one, and nothing is written", async () => {
    const canary = await Canary.start()
    const site = await Site.start()
    const harness = await guarded()
    const id = await harness.endpoint({ url: site.url() })
    const before = await endpoints(harness)
    const { endpoints: resource } = harness.posthorn
    const urls = [...literalUrls(canary), ...Object.values(URLS).map((make) => make(canary.port))]
    const refusals: { [url: string]: unknown } = {}
    for (const url of urls) {
      refusals[url] = await Promise.all(
        [resource.create("acme", { url }), resource.update("acme", id, { url })].map((call) =>
          call.then(
            () => "accepted",
            ({ code, field }) => `${code} ${field}`,
          ),
        ),
      )
    }
    expect(refusals).toEqual(all(urls, ["invalid_input url", "invalid_input url"]))
    expect(await endpoints(harness)).toEqual(before)
  })

  test("is refused again when a connection to it would be opened", async () => {
    const canary = await Canary.start()
    const site = await Site.start()
    const harness = await guarded()
    const urls = literalUrls(canary)
    expect(await outcomes(harness, site, urls)).toEqual(all(urls, "target_forbidden"))
    expect(site.visits).toEqual([])
  })

  test.each(Object.keys(URLS))("is refused at the connection: %s", async (what) => {
    const canary = await Canary.start()
    const site = await Site.start()
    const url = URLS[what]!(canary.port)
    expect(await outcomes(await guarded(), site, [url])).toEqual({ [url]: "target_forbidden" })
    expect(site.visits).toEqual([])
  })
})

test("a port that is not in the operator's list is refused on an open address", async () => {
  const canary = await Canary.start()
  const site = await Site.start()
  const harness = await Harness.start({ egress: { allow: ["127.0.0.0/8"], ports: [site.port] } })
  await expect(harness.endpoint({ url: canary.url() })).rejects.toMatchObject({ field: "url" })
  expect(await outcomes(harness, site, [canary.url()])).toEqual({ [canary.url()]: "target_forbidden" })
})

test("plain http is refused where the operator wants https", async () => {
  const canary = await Canary.start()
  const site = await Site.start()
  const harness = await Harness.start({ egress: { allow: ["127.0.0.0/8"], http: false } })
  await expect(harness.endpoint({ url: canary.url() })).rejects.toMatchObject({ field: "url" })
  await plant(harness, await harness.endpoint({ url: site.url().replace("http:", "https:") }), canary.url())
  await harness.send()
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "target_forbidden" }])
})

test.each([
  ["0.0.0.0", "0.0.0.0/32", "127.0.0.1"],
  ["[::]", "::/128", "::1"],
])("an open address (%s) whose socket ends up at a closed one gets no request", async (host, open, closed) => {
  const inside = await Site.start({ host: closed })
  const harness = await Harness.start({ egress: { allow: [open] } })
  await harness.endpoint({ url: inside.url("/", host) })
  await harness.send()
  expect(await harness.published("delivery.attempt", 1)).toMatchObject([{ error: "target_forbidden" }])
  expect(inside.connections).toBe(1)
  expect(inside.visits).toEqual([])
})
