/**
 * `npm run screenshots`: a picture of each page of the dashboard and the portal into docs/images/, from the real programs with the data
 * of a day. Run it by hand after a page has changed.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Posthorn } from "../src/posthorn.ts"
import prepareBrowserTests from "../test/browser/support/global-setup.ts"
import { DASHBOARD_PATTERNS, examplesOf, oneOfEach, PORTAL_PATTERNS } from "../test/browser/support/routes.ts"
import { Site } from "../test/browser/support/site.ts"
import { Tab } from "../test/browser/support/tab.ts"
import { fillWorld, untilSettled, WORLD } from "../test/browser/support/world.ts"
import type { Receiver } from "../test/support/receiver.ts"
import { ShiftedClock } from "../test/support/shifted-clock.ts"

const FOLDER = fileURLToPath(new URL("../docs/images/", import.meta.url))
const SIZE = { width: 1440, height: 1000 }
const QUALITY = 80
const HOUR_MS = 3_600_000
const HOURS = 24
/** For the figures of the live stream. */
const LIVE_MS = 8000

const clock = new ShiftedClock(-HOURS * HOUR_MS)

/** Traffic of a day: more at noon than at night, and an hour in which an endpoint was down. */
async function fillDay(posthorn: Posthorn, receiver: Receiver): Promise<void> {
  await fillWorld(posthorn, receiver)
  for (let hour = 0; hour < HOURS; hour++) {
    receiver.always("/healthy", hour === 17 ? 503 : 200)
    const count = Math.round(30 + 25 * Math.sin(((hour - 6) / 12) * Math.PI))
    const messages = Array.from({ length: count }, (_, n) => ({
      eventType: n % 5 === 0 ? "user.created" : "invoice.paid",
      payload: { invoice: hour * 100 + n, amount: 2900, currency: "EUR" },
    }))
    for (const app of ["acme", "globex"]) await posthorn.sendBatch(app, messages)
    await untilSettled(posthorn)
    clock.advance(HOUR_MS)
    await posthorn.engine!.pollOnce()
    await untilSettled(posthorn)
  }
  await posthorn.monitor!.runOnce()
}

/** The traffic while the pictures are made. */
function startTraffic(site: Site): () => Promise<void> {
  let isOver = false
  const send = async () => {
    for (let n = 0; !isOver; n++) {
      const message = { eventType: "invoice.paid", payload: { invoice: 5000 + n } }
      await site.call("POST", `/app/${n % 3 === 0 ? "acme" : "globex"}/msg`, message)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const sending = send()
  return () => {
    isOver = true
    return sending
  }
}

/** `/endpoints/:app/:id` is `endpoint.webp`: the name of the list without its plural, where a row is shown. */
function nameOf(pattern: string): string {
  const words = pattern.split("/").filter((part) => part !== "" && !part.startsWith(":"))
  if (!pattern.includes(":")) return words.join("-") || "overview"
  const last = words.pop()!
  return [...words, last.replace(/ies$/, "y").replace(/s$/, "")].join("-")
}

async function picture({ context, page }: Tab, name: string): Promise<void> {
  const session = await context.newCDPSession(page)
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: QUALITY })
  await session.detach()
  writeFileSync(`${FOLDER}${name}.webp`, Buffer.from(data, "base64"))
  console.log(`docs/images/${name}.webp`)
}

async function pictures(site: Site, tab: Tab, patterns: readonly string[], home: string): Promise<void> {
  await tab.open(home)
  await tab.page.waitForTimeout(LIVE_MS)
  for (const { pattern, path } of oneOfEach(await examplesOf(site, patterns))) {
    await tab.go(path)
    await tab.page.waitForTimeout(500)
    await picture(tab, nameOf(pattern))
  }
}

prepareBrowserTests()
mkdirSync(FOLDER, { recursive: true })
const site = await Site.start({ ...WORLD, fill: fillDay, clock })
const stopTraffic = startTraffic(site)
try {
  const operator = await Tab.open(site, { ...SIZE, timezone: "Europe/Berlin" })
  await pictures(site, operator, DASHBOARD_PATTERNS, "/")
  const [dark, phone] = [
    { ...SIZE, theme: "dark" },
    { width: 390, height: 844 },
  ] as const
  for (const [name, options] of Object.entries({ dark, phone })) {
    const tab = await Tab.open(site, options)
    await tab.open("/")
    await tab.page.waitForTimeout(LIVE_MS)
    await picture(tab, `overview-${name}`)
  }
  const customer = await Tab.open(site, { ...SIZE, as: { portalOf: "acme" } })
  await pictures(site, customer, PORTAL_PATTERNS, "/portal")
} finally {
  await stopTraffic()
  await site.close()
}
process.exit()
