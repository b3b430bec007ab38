/** Settings of egress that the environment may open, and those that it may not change. */
import { join } from "node:path"
import { expect, onTestFinished, test, vi } from "vitest"
import { systemClock } from "../../src/core/clock.ts"
import type { PosthornOptions } from "../../src/options.ts"
import { Guard } from "../../src/transport/egress/guard.ts"
import { type EgressInput, parseEgress } from "../../src/transport/egress/settings.ts"
import { Remote } from "../faults/remote.ts"
import { Harness, temporaryFolder } from "../support/harness.ts"
import { Canary, OPEN } from "./canary.ts"
import { Site } from "./site.ts"

const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]

/** A Posthorn in a process of its own with these variables. */
async function remote(environment: { [name: string]: string }, options: Partial<PosthornOptions> = {}) {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const started = Remote.start(["env", ...variables])
  const store = `sqlite:${join(temporaryFolder(), "posthorn.db")}`
  await started.open({ store, logger: "silent", egress: {}, ...options })
  await started.posthorn.applications.create({ uid: "acme", name: "Acme" })
  return started
}

test("proxies that the environment names are not asked", async () => {
  const canary = await Canary.start()
  const site = await Site.start()
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const name of PROXY_VARIABLES) vi.stubEnv(name, canary.url("127.0.0.1", ""))
  vi.stubEnv("NO_PROXY", "")
  const harness = await Harness.start({ egress: { allow: [`${OPEN}/32`] } })
  await harness.endpoint({ url: site.url() })
  await harness.send()
  expect(await harness.published("delivery.delivered", 1)).toMatchObject([{ response_status: 200 }])
})

test("nor are they when Node itself was told to use them from its start", async () => {
  const canary = await Canary.start()
  const site = await Site.start()
  const proxies = PROXY_VARIABLES.map((name) => [name, canary.url("127.0.0.1", "")])
  const { posthorn, ...process } = await remote(
    { NODE_USE_ENV_PROXY: "1", ...Object.fromEntries(proxies) },
    { egress: { allow: [`${OPEN}/32`] } },
  )
  await posthorn.endpoints.create("acme", { url: site.url() })
  await posthorn.send("acme", { eventType: "a.b", payload: {} })
  expect(await site.visited(1)).toHaveLength(1)
  expect(process.program.stderr).toBe("")
})

test("POSTHORN_EGRESS_ALLOW opens a range for a process, and only that", async () => {
  const canary = await Canary.start()
  const site = await Site.start()
  const { posthorn } = await remote({ POSTHORN_EGRESS_ALLOW: `${OPEN}/32, 127.0.0.4` })
  await expect(posthorn.endpoints.create("acme", { url: canary.url() })).rejects.toMatchObject({
    code: "invalid_input",
  })
  await posthorn.endpoints.create("acme", { url: site.url() })
  await posthorn.send("acme", { eventType: "a.b", payload: {} })
  expect(await site.visited(1)).toHaveLength(1)
})

test("without it, loopback is closed", async () => {
  const site = await Site.start()
  const { posthorn } = await remote({ POSTHORN_EGRESS_ALLOW: "" })
  await expect(posthorn.endpoints.create("acme", { url: site.url() })).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining(
      "url must not lead to an address that is not public, unless egress.allow or POSTHORN_EGRESS_ALLOW opens it",
    ),
  })
})

test.each<[string, EgressInput, { [name: string]: string }, string, boolean]>([
  ["a range", {}, { POSTHORN_EGRESS_ALLOW: "10.0.0.0/8" }, "http://10.1.2.3/", true],
  [
    "ranges with commas and spaces",
    {},
    { POSTHORN_EGRESS_ALLOW: " ::1, 10.0.0.0/8 " },
    "http://[::1]/",
    true,
  ],
  ["another range", {}, { POSTHORN_EGRESS_ALLOW: "10.0.0.0/8" }, "http://127.0.0.1/", false],
  ["the option before it", { allow: [] }, { POSTHORN_EGRESS_ALLOW: "10.0.0.0/8" }, "http://10.1.2.3/", false],
  ["ports", {}, { POSTHORN_EGRESS_PORTS: "443, 22" }, "https://1.1.1.1:22/", true],
  ["other ports", {}, { POSTHORN_EGRESS_PORTS: "443, 22" }, "https://1.1.1.1:80/", false],
  ["any port", {}, { POSTHORN_EGRESS_PORTS: "any" }, "https://1.1.1.1:6379/", true],
  ["https alone", {}, { POSTHORN_EGRESS_HTTP: "false" }, "http://1.1.1.1/", false],
])("%s in the environment: the URL is judged by it", async (_what, input, environment, url, open) => {
  const guard = new Guard(parseEgress(input, environment), systemClock())
  expect((await guard.urlProblem(url)) === null).toBe(open)
})

test.each([
  ["POSTHORN_EGRESS_ALLOW", "everything"],
  ["POSTHORN_EGRESS_ALLOW", "10.1.2.3/8"],
  ["POSTHORN_EGRESS_PORTS", "443, x"],
  ["POSTHORN_EGRESS_PORTS", "70000"],
  ["POSTHORN_EGRESS_HTTP", "no"],
  ["POSTHORN_EGRESS_PROXY", "socks5://127.0.0.1:1080"],
])("%s=%s is refused by its name", (name, value) => {
  const refusal = expect.objectContaining({ code: "invalid_input", field: name })
  expect(() => parseEgress({}, { [name]: value })).toThrow(refusal)
})
