/** The dashboard without a mouse. */
import { DASHBOARD_PATTERNS, examplesOf, oneOfEach, PORTAL_PATTERNS, walk } from "./support/routes.ts"
import type { Role, Tab } from "./support/tab.ts"
import { expect, testOn } from "./support/test.ts"
import { WORLD } from "./support/world.ts"

const test = testOn(WORLD)
const PATIENCE = 300_000

/** More than any page has. */
const MOST_STOPS = 600
const STOPS_AT_ONCE = 25

/** Presses Tab until the focus comes to an element again, and returns the elements below `root` that it did not come to. */
async function unreached({ page }: Tab, root: "body" | "main"): Promise<string[]> {
  await page.evaluate((around) => {
    const reached = new Set<Element>()
    const state = { reached, isOver: false }
    Object.assign(globalThis, { tabbing: state })
    document.addEventListener("focusin", ({ target }) => {
      const element = target as Element
      state.isOver ||= reached.has(element) || (reached.size > 0 && element.closest(around) === null)
      reached.add(element)
    })
    // The focus goes on from here.
    document.querySelector<HTMLElement>("main")?.focus()
    reached.clear()
  }, root)
  for (let i = 0; i < MOST_STOPS / STOPS_AT_ONCE; i++) {
    for (let stop = 0; stop < STOPS_AT_ONCE; stop++) await page.keyboard.press("Tab")
    if (await page.evaluate(() => (globalThis as unknown as { tabbing: Tabbing }).tabbing.isOver)) break
  }
  const missed = await page.evaluate((around) => {
    const { reached } = (globalThis as unknown as { tabbing: Tabbing }).tabbing
    const selector = "a[href], button, input, select, textarea, summary, [tabindex='0'], [role=button]"
    return [...document.querySelectorAll<HTMLElement>(selector)]
      .filter((one) => one.closest(around) !== null && !one.matches(":disabled"))
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !reached.has(one))
      .map((one) => one.outerHTML.slice(0, 120))
  }, root)
  return missed.length === 0 ? [] : [`Tab does not reach ${missed.length} elements, such as ${missed[0]}`]
}

interface Tabbing {
  readonly reached: Set<Element>
  readonly isOver: boolean
}

const PAGES: readonly (readonly [name: string, as: Role, home: string, patterns: readonly string[]])[] = [
  ["dashboard", "operator", "/", DASHBOARD_PATTERNS],
  ["portal", { portalOf: "acme" }, "/portal", PORTAL_PATTERNS],
]

test.for(PAGES)(
  "the keyboard alone reaches everything on each page of the %s",
  { timeout: PATIENCE },
  async ([, as, home, patterns], { site, open }) => {
    const tab = await open({ as })
    await tab.open(home)
    expect(await unreached(tab, "body")).toEqual([])
    const examples = oneOfEach(await examplesOf(site, patterns))
    expect(await walk(examples, tab, "go", () => unreached(tab, "main"))).toEqual({})
  },
)

test("g and a letter go to each page of the menu, as the help says", async ({ tab }) => {
  const { page } = tab
  await tab.open("/")
  await page.keyboard.press("?")
  const help = page.getByRole("dialog", { name: "Keys" })
  await help.waitFor()
  const rows = (await help.locator("tr").allInnerTexts()).map((row) => row.trim().replaceAll(/\s+/g, " "))
  await page.keyboard.press("Escape")
  await help.waitFor({ state: "detached" })
  const links = page.getByRole("navigation", { name: "Pages", exact: true }).locator("li a")
  const keys = rows.flatMap((row) => /^g (\S) .+$/.exec(row)?.[1] ?? [])
  expect(keys).toHaveLength(await links.count())
  for (const [i, key] of keys.entries()) {
    await page.keyboard.press("g")
    await page.keyboard.press(key)
    await tab.settled()
    expect(await page.evaluate(() => location.pathname)).toBe(await links.nth(i).getAttribute("href"))
  }
})

test("/ goes to the search, and typing there is no command", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/applications")
  await page.keyboard.press("/")
  await page.keyboard.type("g o acme")
  expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).value)).toBe("g o acme")
  expect(page.url()).toBe(`${site.url}/applications`)
})

test("j, k and Enter open a row of each list", { timeout: PATIENCE }, async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/")
  let lists = 0
  for (const { path } of await examplesOf(
    site,
    DASHBOARD_PATTERNS.filter((one) => !one.includes(":")),
  )) {
    await tab.go(path)
    const hrefs = await page
      .locator("main [data-row]")
      .evaluateAll((rows) => rows.map((row) => (row as HTMLElement).dataset.href ?? null))
    if (hrefs[0] == null) continue
    lists++
    await page.keyboard.press("j")
    expect(await page.locator("main .selected").getAttribute("data-href"), path).toBe(hrefs[0])
    if (hrefs.length > 1) {
      await page.keyboard.press("j")
      expect(await page.locator("main .selected").getAttribute("data-href"), path).toBe(hrefs[1])
      await page.keyboard.press("k")
    }
    await page.keyboard.press("Enter")
    await tab.settled()
    expect(new URL(page.url()).pathname, path).toBe(new URL(hrefs[0], site.url).pathname)
  }
  expect(lists).toBeGreaterThan(3)
})

test("the focus stays on a pressed button, and returns to the one that opened a dialog", async ({ tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/healthy")
  await page.getByRole("button", { name: "Pause" }).focus()
  await page.keyboard.press("Enter")
  const resume = page.getByRole("button", { name: "Resume" })
  await resume.waitFor()
  await expect.poll(() => resume.evaluate((button) => button === document.activeElement)).toBe(true)
  await page.keyboard.press("Enter")

  const edit = page.getByRole("button", { name: "Edit" })
  const dialog = page.getByRole("dialog")
  const closings = [
    () => page.keyboard.press("Escape"),
    () => dialog.getByRole("button", { name: "Cancel" }).press("Enter"),
    () => dialog.getByRole("button", { name: "Save" }).press("Enter"),
  ]
  for (const close of closings) {
    await edit.focus()
    await page.keyboard.press("Enter")
    await dialog.waitFor()
    await close()
    await dialog.waitFor({ state: "detached" })
    expect(await edit.evaluate((button) => button === document.activeElement)).toBe(true)
  }
})
