/** Every page of the route tables, by its URL. Pages that are added later are covered without a change here. */
import { DASHBOARD_PATTERNS, examplesOf, PORTAL_PATTERNS, walk } from "../support/routes.ts"
import type { Tab } from "../support/tab.ts"
import { expect, testOn } from "../support/test.ts"
import { WORLD } from "../support/world.ts"

const test = testOn(WORLD)
const PATIENCE = 300_000

async function basics({ page }: Tab): Promise<string[]> {
  return page.evaluate(() => {
    const headings = [...document.querySelectorAll("main h1")].map(({ textContent }) => textContent?.trim())
    const failure = document.querySelector(".failure, .banner.bad")?.textContent
    return [
      ...(headings.length === 1 && headings[0] !== ""
        ? []
        : [`the headings are ${JSON.stringify(headings)}`]),
      ...(document.title.includes(" · ") ? [] : [`the title is ${document.title}`]),
      ...(failure == null ? [] : [`it shows ${failure}`]),
    ]
  })
}

test("every page of the dashboard opens by its URL", { timeout: PATIENCE }, async ({ site, tab }) => {
  const examples = await examplesOf(site, DASHBOARD_PATTERNS)
  expect(await walk(examples, tab, "open", () => basics(tab))).toEqual({})
})

test("a reader sees every page of the dashboard", { timeout: PATIENCE }, async ({ site, open }) => {
  const tab = await open({ as: "reader" })
  const examples = await examplesOf(site, DASHBOARD_PATTERNS)
  await tab.open("/")
  expect(await walk(examples, tab, "go", () => basics(tab))).toEqual({})
})

test("every page of the portal opens by its URL", { timeout: PATIENCE }, async ({ site, open }) => {
  const tab = await open({ as: { portalOf: "acme" } })
  const examples = await examplesOf(site, PORTAL_PATTERNS)
  expect(await walk(examples, tab, "open", () => basics(tab))).toEqual({})
})

test("no page of the portal leads to a page of operators, or names one", { timeout: PATIENCE }, async ({
  site,
  open,
}) => {
  const tab = await open({ as: { portalOf: "acme" } })
  await tab.open("/portal")
  const examples = await examplesOf(site, PORTAL_PATTERNS)
  const wrong = await walk(examples, tab, "go", () =>
    tab.page.evaluate(() => {
      for (const details of document.querySelectorAll("main details")) details.setAttribute("open", "")
      const links = [...document.querySelectorAll("a")].map(({ pathname }) => pathname)
      return links.filter((path) => path !== "/portal" && !path.startsWith("/portal/"))
    }),
  )
  expect(wrong).toEqual({})
  await tab.open("/portal/messages/invoice-17")
  await tab.page.locator("summary", { hasText: "/waiting" }).click()
  await tab.page.getByText("It waits because the retry policy sets a delay after a failure.").waitFor()
  expect(await tab.page.getByText("on the delivery's page").count()).toBe(0)
})

/** Sums the layout shifts from the beginning of the page. Below 0.1 is good. */
const SUM_SHIFTS = `{
  let sum = 0
  const add = (shifts) => { for (const { value } of shifts) sum += value }
  const observer = new PerformanceObserver((list) => add(list.getEntries()))
  observer.observe({ type: "layout-shift" })
  globalThis.sumOfShifts = () => {
    add(observer.takeRecords())
    return sum
  }
}`

test.for([1440, 390])("the overview appears without jumps at %d px", async (width, { open }) => {
  const tab = await open({ width, script: SUM_SHIFTS })
  await tab.open("/")
  await tab.live()
  expect(await tab.page.evaluate("sumOfShifts()")).toBeLessThan(0.05)
})

/** A list that is cut at the right hides what an operator looks for. */
async function cutTables({ page }: Tab): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll(".table-frame")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map((table) => `${table.ariaLabel} is ${table.scrollWidth} px wide in ${table.clientWidth} px`),
  )
}

test.for([1440, 390])(
  "no list is cut on a screen of %d px",
  { timeout: PATIENCE },
  async (width, { site, open }) => {
    const tab = await open({ width })
    await tab.open("/")
    const examples = await examplesOf(site, DASHBOARD_PATTERNS)
    expect(await walk(examples, tab, "go", () => cutTables(tab))).toEqual({})
  },
)

test("on a phone the overview says why each endpoint is in trouble", async ({ open }) => {
  const tab = await open({ width: 390 })
  await tab.open("/")
  const row = tab.page.getByRole("row").filter({ hasText: "/waiting" })
  await row.getByText("last error: HTTP 503").waitFor()
})
