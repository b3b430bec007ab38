/** Old links and senseless filters: each page names the error, and offers a way on. */
import {
  DASHBOARD_PATTERNS,
  type Example,
  examplesOf,
  oneOfEach,
  PORTAL_PATTERNS,
  walk,
} from "./support/routes.ts"
import type { Role, Tab } from "./support/tab.ts"
import { expect, testOn } from "./support/test.ts"
import { WORLD } from "./support/world.ts"

const test = testOn(WORLD)
const PATIENCE = 300_000
/** As an id of nothing that ever was, or that was deleted. */
const NOTHING = "nothing-has-this-name"

/** A sentence in the page, and a link or a button that goes on from there. */
async function wayOn({ page }: Tab): Promise<string[]> {
  return page.evaluate(() => {
    const shown = [...document.querySelectorAll("main .failure, main .empty, main [role=alert]")]
    const sentence = shown
      .map(({ textContent }) => textContent ?? "")
      .find((text) => /\w+ \w+ \w+/.test(text))
    const ways = document.querySelectorAll("main a[href], main button")
    return [
      ...(sentence === undefined ? ["it has no sentence that says what is wrong"] : []),
      ...(ways.length === 0 ? ["it has no link and no button to go on"] : []),
    ]
  })
}

const PAGES: readonly (readonly [name: string, as: Role, home: string, patterns: readonly string[]])[] = [
  ["dashboard", "operator", "/", DASHBOARD_PATTERNS],
  ["portal", { portalOf: "acme" }, "/portal", PORTAL_PATTERNS],
]

test.for(PAGES)(
  "a deleted thing in an old address of the %s is said",
  { timeout: PATIENCE },
  async ([, as, home, patterns], { open }) => {
    const tab = await open({ as })
    tab.expect(/answered 4(04|22)/)
    await tab.open(home)
    const old: Example[] = patterns
      .filter((pattern) => pattern.includes(":"))
      .map((pattern) => ({ pattern, path: pattern.replaceAll(/:\w+/g, NOTHING) }))
    expect(await walk(old, tab, "go", () => wayOn(tab))).toEqual({})
  },
)

test("an address that leads nowhere is a page with a way on; the API and sources answer as to programs", async ({
  site,
  tab,
}) => {
  const answer = async (path: string) => {
    const { status, headers } = await fetch(site.url + path, { headers: { accept: "text/html,*/*" } })
    return [status, headers.get("content-type")]
  }
  expect(await answer("/nowhere")).toEqual([404, "text/html; charset=utf-8"])
  expect(await answer("/api/v1/nowhere")).toEqual([404, "application/json; charset=utf-8"])
  expect(await answer("/in/unknown")).toEqual([404, expect.not.stringContaining("html")])
  tab.expect(/answered 404/)
  await tab.open("/nowhere")
  expect(await tab.page.textContent("main")).toContain("The address /nowhere leads nowhere.")
})

test("a filter that makes no sense is said, or finds nothing", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  tab.expect(/answered 4(04|22)/)
  await tab.open("/")
  const filters = [
    ...["app_id", "endpoint_id", "msg_id", "id", "q", "status", "health", "state", "rule", "kind"],
    ...["event_types", "channel", "tag", "before", "after", "dead_reason", "cause", "iterator"],
  ]
  const query = new URLSearchParams(filters.map((name) => [name, NOTHING]))
  const pages = oneOfEach(await examplesOf(site, DASHBOARD_PATTERNS))
  const senseless = pages.map(({ pattern, path }) => ({ pattern, path: `${path}?${query}` }))
  const isWhole = () =>
    tab.page.evaluate(() => (document.querySelector("main h1") === null ? ["it has no heading"] : []))
  expect(await walk(senseless, tab, "go", isWhole)).toEqual({})
})

const REFUSED = [
  ["/endpoints?health=rubbish", "health: must be one of healthy, degraded"],
  ["/endpoints?app_id=nobody", 'there is no application "nobody"'],
  ["/deliveries?status=rubbish", "status: must be one of pending"],
  ["/workers?app_id=nobody", 'there is no application "nobody"'],
  ["/sources?app_id=nobody", 'there is no application "nobody"'],
  ["/changes?app_id=nobody", 'there is no application "nobody"'],
  ["/sessions?app_id=nobody", 'there is no application "nobody"'],
  ["/alerts?state=rubbish", "state: must be one of pending, firing"],
] as const

test("a refused filter is named, and a button clears it", { timeout: PATIENCE }, async ({ tab }) => {
  const { page } = tab
  tab.expect(/answered 4(04|22)/)
  await tab.open("/")
  for (const [path, sentence] of REFUSED) {
    await tab.go(path)
    await page.locator("main .failure").getByText(sentence).waitFor()
    await page.getByRole("button", { name: "Clear the filters" }).click()
    await tab.settled()
    await page.locator("main .failure").waitFor({ state: "detached" })
    expect(new URL(page.url()).search, path).toBe("")
  }
})

test("back and forward return to the filters that were set", async ({ site, tab }) => {
  await tab.open("/deliveries?status=dead")
  await tab.go("/endpoints")
  await tab.page.goBack()
  await tab.settled()
  expect(tab.page.url()).toBe(`${site.url}/deliveries?status=dead`)
  await tab.page.getByRole("heading", { level: 1, name: "Deliveries" }).waitFor()
  await tab.page.goForward()
  await tab.page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor()
})
