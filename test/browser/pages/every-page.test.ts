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
