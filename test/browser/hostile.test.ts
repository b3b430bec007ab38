/** Strings of strangers are shown as text on every page: nothing that they say runs, and no policy had to stop it. */
import { ATTACKS, HOSTILE, HOSTILE_EXAMPLES } from "./support/hostile-world.ts"
import { DASHBOARD_PATTERNS, type Example, examplesOf, PORTAL_PATTERNS, walk } from "./support/routes.ts"
import type { Tab } from "./support/tab.ts"
import { expect, testOn } from "./support/test.ts"

const test = testOn(HOSTILE)
const PATIENCE = 300_000

/** The tab notes a call of `hacked` as an error of the page. */
const TRAP = `globalThis.hacked = (by) => { console.error("ran: " + by) }`

/** Opens what the page hides, and finds elements and addresses that no page of ours has. */
async function strangers(tab: Tab): Promise<string[]> {
  const { page } = tab
  await page.evaluate(() => {
    const closed = document.querySelectorAll<HTMLElement>("main details:not([open]) > summary")
    for (const summary of closed) summary.click()
  })
  await tab.settled()
  return page.evaluate(() => {
    const wrong = [
      "main script, main style, main iframe, main object, main embed, main meta, main link, main base, main form[action]",
      "[onload], [onerror], [onfocus], [onclick], [autofocus], [srcdoc]",
    ].flatMap((selector) => [...document.querySelectorAll(selector)].map(({ outerHTML }) => outerHTML))
    const links = [...document.querySelectorAll<HTMLAnchorElement>("a[href]")]
    const foreign = links
      .filter(({ protocol }) => !/^https?:$/.test(protocol))
      .map(({ href }) => `link to ${href}`)
    const isPolluted = (Object.prototype as { isAdmin?: boolean }).isAdmin !== undefined
    return [...wrong, ...foreign, ...(isPolluted ? ["Object.prototype was changed"] : [])]
  })
}

/** Pages that must show one of the strings: without it the test would try nothing. */
const SHOWN = [
  "/endpoints/:app/:id",
  "/messages",
  "/messages/:app/:id",
  "/deliveries/:id",
  "/alerts/silences",
  "/sources/:app/:id",
  "/applications",
  "/applications/:id",
  "/event-types",
  "/event-types/:name",
  "/keys",
]

test("no page of the dashboard runs what a stranger wrote", { timeout: PATIENCE }, async ({ site, open }) => {
  const tab = await open({ script: TRAP })
  await tab.open("/")
  const examples = await examplesOf(site, DASHBOARD_PATTERNS, HOSTILE_EXAMPLES)
  const shown = new Set<string>()
  const look = async ({ pattern }: Example) => {
    const wrong = await strangers(tab)
    const text = await tab.page.locator("main").innerText()
    if (ATTACKS.some((attack) => text.includes(attack))) shown.add(pattern)
    return wrong
  }
  expect(await walk(examples, tab, "go", look)).toEqual({})
  expect([...shown]).toEqual(expect.arrayContaining(SHOWN))
})

test("no page of the portal runs what a stranger wrote", { timeout: PATIENCE }, async ({ site, open }) => {
  const tab = await open({ as: { portalOf: "acme" }, script: TRAP })
  await tab.open("/portal")
  const examples = await examplesOf(site, PORTAL_PATTERNS, HOSTILE_EXAMPLES)
  expect(await walk(examples, tab, "go", () => strangers(tab))).toEqual({})
})

test("an address and filters with markup are shown as text", { timeout: PATIENCE }, async ({ open }) => {
  const tab = await open({ script: TRAP })
  tab.expect(/answered 4\d\d/)
  await tab.open(`/${encodeURIComponent(ATTACKS[1])}`.replace("/", "/endpoints/"))
  const filters = ["q", "app", "status", "type", "endpoint", "tag", "since", "until", "iterator"]
  const query = new URLSearchParams(filters.map((name, i) => [name, ATTACKS[i]!]))
  const paths = DASHBOARD_PATTERNS.map((pattern) => ({
    pattern,
    path: `${pattern.replaceAll(/:\w+/g, () => encodeURIComponent(ATTACKS[1]))}?${query}`,
  }))
  expect(await walk(paths, tab, "go", () => strangers(tab))).toEqual({})
})
