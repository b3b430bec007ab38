/** Signing in to the dashboard, and the message of a page whose session has ended. */
import { OPERATOR } from "../../src/resources/sessions.ts"
import { ShiftedClock } from "../support/shifted-clock.ts"
import { API_KEY } from "./support/site.ts"
import { expect, testOn } from "./support/test.ts"

const HOUR_MS = 3_600_000

let expiredCode = ""
const test = testOn({
  clock: new ShiftedClock(-2 * HOUR_MS),
  async fill({ sessions }) {
    expiredCode = await sessions.createCode(OPERATOR)
  },
})

test("the printed link signs in, once, and leaves no code behind", async ({ site, open }) => {
  const link = await site.printedLink()
  const first = await open({ as: null })
  await first.open(link)
  await first.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
  expect(first.page.url()).toBe(`${site.url}/`)
  expect(await first.page.evaluate(() => history.length)).toBe(2)
  const [cookie] = await first.context.cookies()
  expect(cookie).toMatchObject({ name: "posthorn-dashboard", httpOnly: true, sameSite: "Strict" })
  expect(await first.page.evaluate(() => document.cookie)).toBe("")

  const second = await open({ as: null })
  second.expect(/answered 401/)
  await second.open(link)
  await second.page.getByText("this link was used already: ask for a new one").waitFor()
  await second.page.getByText("posthorn dashboard").waitFor()
  expect(await second.context.cookies()).toEqual([])
})

test("the browser that used a link may open it again", async ({ site, open }) => {
  const tab = await open({ as: null })
  tab.expect(/auth\/session answered 401/)
  const link = await site.loginLink()
  await tab.open(link)
  await tab.live()
  await tab.page.goto("about:blank")
  await tab.open(link)
  await tab.live()
  expect(tab.page.url()).toBe(`${site.url}/`)
})

test("an expired link says so, and a key signs in instead", async ({ site, open }) => {
  const tab = await open({ as: null })
  tab.expect(/answered 401/)
  await tab.open(`${site.url}/endpoints#code=${expiredCode}`)
  const { page } = tab
  await page.getByText("this link has expired: ask for a new one").waitFor()
  await page.getByLabel("Key", { exact: true }).fill("ph_wrong")
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("alert").getByText("Invalid token. Enter another key, or open a new link.").waitFor()
  await page.getByLabel("Key", { exact: true }).fill(API_KEY)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor()
})

test("a session that was ended elsewhere says so, and goes on where it was", async ({ site, open }) => {
  const tab = await open()
  const { page } = tab
  tab.expect(/answered 401/)
  await tab.open("/deliveries?status=dead")
  await tab.live()
  const { data } = await site.call("GET", "/session")
  for (const { id } of data) await site.call("DELETE", `/session/${id}`)
  await page.getByText("Your session has ended: The token was revoked").waitFor()
  await page.getByRole("button", { name: "Sign in again" }).click()
  await page.getByLabel("Key", { exact: true }).fill(API_KEY)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { level: 1, name: "Deliveries" }).waitFor()
  expect(page.url()).toBe(`${site.url}/deliveries?status=dead`)
  await tab.live()
})

test("a tab goes on without a key when another one has signed in again", async ({ site, open }) => {
  const first = await open()
  const second = await first.another()
  for (const tab of [first, second]) {
    tab.expect(/answered 401/)
    await tab.open("/deliveries")
    await tab.live()
  }
  const { data } = await site.call("GET", "/session")
  for (const { id } of data) await site.call("DELETE", `/session/${id}`)
  for (const tab of [first, second]) await tab.page.getByText("Your session has ended").waitFor()
  await first.page.getByRole("button", { name: "Sign in again" }).click()
  await first.page.getByLabel("Key", { exact: true }).fill(API_KEY)
  await first.page.keyboard.press("Enter")
  await first.live()
  await second.page.getByRole("button", { name: "Sign in again" }).click()
  await second.live()
  // The shared stream may be live before the session of this tab is read.
  await second.page.locator(".banner").waitFor({ state: "detached" })
})

test("after signing out the cookie opens nothing", async ({ open }) => {
  const tab = await open()
  tab.expect(/answered 401/)
  await tab.open("/")
  const cookies = await tab.context.cookies()
  await tab.page.getByRole("button", { name: "Sign out" }).click()
  await tab.page.getByText("You are signed out.").waitFor()
  await tab.context.addCookies(cookies)
  await tab.open("/")
  await tab.page.getByLabel("Key", { exact: true }).waitFor()
})

test("without an answer of the server the page says that it is still signed in", async ({ site, open }) => {
  const tab = await open()
  tab.expect(/net::ERR/)
  await tab.open("/settings")
  await tab.page.route("**/auth/logout", (route) => route.abort("connectionrefused"))
  await tab.page.getByRole("button", { name: "Sign out" }).click()
  await tab.page.getByText("You are still signed in. The server cannot be reached.").waitFor()
  await tab.page.unroute("**/auth/logout")
  await tab.page.getByRole("button", { name: "Sign out" }).click()
  await tab.page.getByText("You are signed out.").waitFor()
  expect(await tab.context.cookies(site.url)).toEqual([])
})

test("a reader is told that the session only reads", async ({ open }) => {
  const tab = await open({ as: "reader" })
  await tab.open("/")
  await tab.page.getByText("(read-only)").waitFor()
})
