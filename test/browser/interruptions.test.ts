/** The server stops, its stream breaks, an address is wrong: the page says so, and goes on when it can. */
import { onTestFinished } from "vitest"
import { FaultProxy } from "../support/fault-proxy.ts"
import { expect, testOn } from "./support/test.ts"

const test = testOn()
const PATIENCE = 60_000

test("the page says that the server is gone, and goes on by itself", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  const { page } = tab
  tab.expect(/ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|net::ERR_FAILED|answered 503/)
  await tab.open("/endpoints")
  await tab.live()
  await page.evaluate(() => Object.assign(globalThis, { isSameDocument: true }))
  await site.stop()
  await page.locator(".banner").waitFor()
  await page.getByText("not live").waitFor()
  // A page that has nothing to show yet says it, too.
  await tab.go("/deliveries")
  await page.locator("main").getByText("The server cannot be reached.").waitFor()
  await page.locator(".banner", { hasText: "The server cannot be reached." }).waitFor()
  await site.boot()
  await tab.live(PATIENCE)
  await page.locator(".banner").waitFor({ state: "detached" })
  expect(await page.evaluate(() => "isSameDocument" in globalThis)).toBe(true)
})

test("a stream that is cut connects again", { timeout: PATIENCE }, async ({ site, open }) => {
  const { hostname: host, port } = new URL(site.url)
  const proxy = await FaultProxy.start({ host, port: Number(port) })
  onTestFinished(() => proxy.close())
  const tab = await open({ through: proxy.through(site.url) })
  const { page } = tab
  tab.expect(/ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|net::ERR_FAILED/)
  await tab.open("/")
  await tab.live()
  proxy.refuse()
  proxy.reset()
  await page.locator(".banner").waitFor()
  await page.getByText("not live").waitFor()
  proxy.heal()
  await tab.live(PATIENCE)
})

test("eight tabs of one browser share one stream", { timeout: PATIENCE }, async ({ tab }) => {
  // HTTP/1.1 allows six connections to a server: with a stream each, the seventh tab would load nothing.
  await tab.open("/")
  for (let i = 0; i < 7; i++) {
    const other = await tab.another()
    await other.open("/endpoints")
    await other.live()
    other.check()
  }
})

test("the dashboard does not join the stream of a portal in the same browser", {
  timeout: PATIENCE,
}, async ({ site, open }) => {
  for (const uid of ["acme", "globex"]) await site.call("POST", "/app", { uid, name: uid })
  const portal = await open({ as: { portalOf: "acme" } })
  await portal.open("/portal")
  await portal.live()
  const dashboard = await portal.another()
  await dashboard.open(await site.loginLink())
  await dashboard.live()
  await site.call("POST", "/app/globex/msg", { eventType: "a", payload: {} })
  const accepted = dashboard.page
    .getByRole("table", { name: /^Messages accepted/ })
    .locator("td:nth-of-type(1)")
  await accepted.filter({ hasText: /[1-9]/ }).first().waitFor({ state: "attached" })
})

test("an unknown address has a sentence and a way on", async ({ tab }) => {
  await tab.open("/")
  await tab.go("/endpoints/acme/main/nothing?x=1")
  await tab.page.getByText("No such page").waitFor()
  await tab.page.getByRole("link", { name: "begin again" }).click()
  await tab.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
})
