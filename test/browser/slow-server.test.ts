/** The server answers late: pages show its answer, and read no more often than it answers. */
import { setTimeout as delay } from "node:timers/promises"
import { onTestFinished } from "vitest"
import { expect, testOn } from "./support/test.ts"

const test = testOn({
  async fill({ applications, endpoints }) {
    await applications.create({ uid: "acme", name: "Acme Robotics" })
    await endpoints.create("acme", { uid: "main", url: "http://127.0.0.1:9/", disabled: true })
  },
})

/** Longer than two refreshes of the page are apart. */
const LATE_MS = 3000

test("a list is shown although events come faster than answers", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/settings")
  await tab.live()
  let reads = 0
  await page.route("**/api/v1/app/acme/msg?**", async (route) => {
    reads++
    await delay(LATE_MS)
    await route.continue()
  })
  const traffic = setInterval(() => {
    void site.call("POST", "/app/acme/msg", { eventType: "invoice.paid", payload: {} }).catch(() => {})
  }, 300)
  onTestFinished(() => clearInterval(traffic))
  await delay(LATE_MS)
  await page.goto(`${site.url}/messages?app_id=acme`)
  await page
    .locator("main tbody tr")
    .first()
    .waitFor({ timeout: 3 * LATE_MS })
  expect(reads).toBeLessThanOrEqual(2)
})
