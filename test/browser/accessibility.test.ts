/** Every page of the route tables with axe-core, in light and dark, on a phone and on a desk. */
import { AXE, axeViolations } from "./support/axe.ts"
import { DASHBOARD_PATTERNS, examplesOf, oneOfEach, PORTAL_PATTERNS, walk } from "./support/routes.ts"
import type { Role, Tab } from "./support/tab.ts"
import { expect, testOn } from "./support/test.ts"
import { WORLD } from "./support/world.ts"

const test = testOn(WORLD)
const PATIENCE = 300_000

const COMBINATIONS = [
  { theme: "light", width: 1440 },
  { theme: "dark", width: 1440 },
  { theme: "light", width: 390 },
  { theme: "dark", width: 390 },
] as const
const PAGES: readonly (readonly [name: string, as: Role, home: string, patterns: readonly string[]])[] = [
  ["dashboard", "operator", "/", DASHBOARD_PATTERNS],
  ["portal", { portalOf: "acme" }, "/portal", PORTAL_PATTERNS],
]

/** Content beyond the right edge of a narrow page cannot be found. */
async function overflow({ page }: Tab): Promise<string[]> {
  const widest = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    return scrollWidth <= clientWidth ? null : `${scrollWidth} px wide on a screen of ${clientWidth} px`
  })
  return widest === null ? [] : [`the page is ${widest}`]
}

/** The violations of the page that is shown, in these combinations. */
async function violations(
  tab: Tab,
  combinations: readonly (typeof COMBINATIONS)[number][],
): Promise<string[]> {
  const found: string[] = []
  for (const { theme, width } of combinations) {
    await tab.show(theme, width)
    await tab.settled()
    const here = [...(await axeViolations(tab.page)), ...(await overflow(tab))]
    found.push(...here.map((one) => `in ${theme} at ${width} px: ${one}`))
  }
  return found
}

test.for(PAGES)(
  "no page of the %s violates a rule",
  { timeout: PATIENCE },
  async ([, as, home, patterns], { site, open }) => {
    const tab = await open({ as, script: AXE })
    await tab.open(home)
    const examples = await examplesOf(site, patterns)
    const first = oneOfEach(examples)
    // Colours and widths do not depend on the row that is shown, but the structure does.
    const wrong = await walk(examples, tab, "go", (example) =>
      violations(tab, first.includes(example) ? COMBINATIONS : COMBINATIONS.slice(0, 1)),
    )
    expect(wrong).toEqual({})
  },
)

test("the sign-in page, the portal without a link, and the help violate no rule", {
  timeout: PATIENCE,
}, async ({ open }) => {
  const stranger = await open({ as: null, script: AXE })
  stranger.expect(/whoami answered 401/)
  for (const path of ["/", "/portal"]) {
    await stranger.open(path)
    expect(await violations(stranger, COMBINATIONS), path).toEqual([])
  }
  const operator = await open({ script: AXE })
  await operator.open("/")
  await operator.page.keyboard.press("?")
  await operator.page.waitForSelector("dialog[open]")
  expect(await violations(operator, COMBINATIONS), "help").toEqual([])
})
