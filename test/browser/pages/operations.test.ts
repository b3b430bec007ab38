/** Live events, alerts, sources, agents and workers, watched and changed by clicks alone. */
import { createHmac } from "node:crypto"
import { ShiftedClock } from "../../support/shifted-clock.ts"
import { badge, confirm, field, GONE, press, rowOf, told } from "../support/press.ts"
import { expect, testOn } from "../support/test.ts"
import { fillWorld, WORLD } from "../support/world.ts"

const HOUR_MS = 3_600_000
const clock = new ShiftedClock(-HOUR_MS)

/** The endpoints fail for long enough that alerts about them fire, with the dates at which they are disabled. */
const test = testOn({
  ...WORLD,
  clock,
  async fill(posthorn, receiver) {
    await fillWorld(posthorn, receiver)
    clock.advance(HOUR_MS)
    for (let i = 0; i < 2; i++) await posthorn.monitor!.runOnce()
  },
})
const PATIENCE = 60_000

test("live events are filtered, paused, and go on with what came meanwhile", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  const { page } = tab
  const send = () => site.call("POST", "/app/globex/msg", { eventType: "invoice.paid", payload: {} })
  await tab.open("/live?app_id=globex&kind=delivery.delivered")
  await tab.live()
  await expect
    .poll(
      async () => {
        await send()
        return rowOf(tab, "delivery.delivered").count()
      },
      { timeout: PATIENCE },
    )
    .toBeGreaterThan(0)
  await press(tab, "Pause")
  const before = await rowOf(tab, "delivery.delivered").count()
  await send()
  await page.getByText(/\d+ events? since the pause/).waitFor()
  expect(await rowOf(tab, "delivery.delivered").count()).toBe(before)
  expect(await rowOf(tab, "delivery.attempt").count()).toBe(0)
  await press(tab, "Go on")
  await expect.poll(() => rowOf(tab, "delivery.delivered").count()).toBeGreaterThan(before)
})

test("an alert says why in the zone of the reader", async ({ open }) => {
  const tab = await open({ timezone: "Asia/Tokyo" })
  await tab.open("/alerts")
  await rowOf(tab, "endpoint-failing").first().getByText("without a success it is disabled").waitFor()
  expect(await tab.page.locator("main tbody").innerText()).not.toMatch(/\dT\d\d:\d\d/)
})

test("a filter that Live refuses is named", async ({ tab }) => {
  await tab.open("/live?kind=nonsense")
  await tab.page.getByRole("alert").getByText("kind: ").waitFor()
})

test("an alert is acknowledged and its rule silenced", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/alerts?state=firing")
  await page.getByRole("row").nth(1).getByRole("link").click()
  await press(tab, "Acknowledge")
  await told(tab, /You have taken this alert/)
  await badge(tab, "acknowledged").waitFor()
  await page.getByRole("definition").getByText("POSTHORN_API_KEY").waitFor()
  await press(tab, "Silence")
  await field(tab, "Hours").fill("0.5")
  await field(tab, "Reason").fill("Planned work")
  await confirm(tab, "Silence")
  await told(tab, "The silence has begun.")
  await tab.open("/alerts/silences")
  await rowOf(tab, "Planned work").getByText("POSTHORN_API_KEY").waitFor()
  await rowOf(tab, "Planned work").getByRole("button", { name: "End now" }).click()
  await told(tab, "The silence has ended.")
  const { data } = await site.call("GET", "/alert-silence")
  expect(data.map(({ reason }: { reason: string }) => reason)).not.toContain("Planned work")
})

test("a channel is created and tested; a rule is changed and restored", async ({ site, tab }) => {
  await tab.open("/alerts/channels")
  await press(tab, "New channel")
  await field(tab, "Name").fill("siren")
  await field(tab, "Kind").selectOption("webhook")
  await field(tab, "URL").fill(site.receiver.url("/alarm"))
  await confirm(tab, "Save")
  await rowOf(tab, "siren").getByRole("button", { name: "Test" }).click()
  await told(tab, /^siren: /)
  await expect.poll(() => site.receiver.to("/alarm").length).toBeGreaterThan(0)
  await tab.open("/alerts/rules")
  await rowOf(tab, "dead-letters-count").getByRole("button", { name: "Edit" }).click()
  await field(tab, "count").fill("5")
  await confirm(tab, "Save")
  await rowOf(tab, "dead-letters-count").getByText("count 5").waitFor()
  await rowOf(tab, "dead-letters-count").getByRole("button", { name: "Defaults" }).click()
  await confirm(tab, "Restore the defaults")
  await rowOf(tab, "dead-letters-count").getByText("count 1000").waitFor()
})

test("a source is created, shows what it accepted and refused, and is rotated and deleted", async ({
  site,
  tab,
}) => {
  const { page } = tab
  await tab.open("/sources?app_id=acme")
  await press(tab, "New source")
  await field(tab, "Name").fill("shop")
  await field(tab, "Verification").selectOption("github")
  await field(tab, "Secret").fill("first")
  await confirm(tab, "Create")
  const url = await page.getByLabel("The URL", { exact: true }).innerText()
  const post = async (secret: string) => {
    const body = '{"order":1}'
    const signature = createHmac("sha256", secret).update(body).digest("hex")
    const headers = { "x-hub-signature-256": `sha256=${signature}`, "content-type": "application/json" }
    return (await fetch(url, { method: "POST", body, headers })).status
  }
  expect([await post("first"), await post("wrong")]).toEqual([202, 401])
  // The activity is written up to two seconds later.
  await expect
    .poll(
      async () => {
        await page.keyboard.press("r")
        return page.getByText("refused: signature").count()
      },
      { timeout: PATIENCE / 4 },
    )
    .toBeGreaterThan(0)
  await rowOf(tab, "mismatch").getByText("POST /").waitFor()
  await press(tab, "Rotate the secret")
  await field(tab, "New secret").fill("second")
  await confirm(tab, "Rotate")
  await told(tab, /verified with the new secret/)
  expect([await post("first"), await post("second")]).toEqual([202, 202])
  await press(tab, "Edit")
  await page.getByRole("checkbox", { name: /^On/ }).uncheck()
  await confirm(tab, "Save")
  await badge(tab, "off").waitFor()
  await press(tab, "Delete")
  tab.expect(GONE)
  await confirm(tab, "Delete the source")
  await told(tab, "shop is deleted.")
  expect(
    (await site.call("GET", `/app/acme/source`)).data.map(({ name }: { name: string }) => name),
  ).not.toContain("shop")
})

test("an agent's page says that it is connected, and what leads to it", async ({ tab }) => {
  const { page } = tab
  await tab.open("/agents")
  await rowOf(tab, "absent").getByText("never connected").waitFor()
  await page.getByRole("link", { name: "hub", exact: true }).click()
  await badge(tab, "connected").waitFor()
  await page.getByRole("link", { name: "what waits" }).waitFor()
})

test("what an agent took is no failure, though it has no HTTP status", async ({ tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/hub")
  await rowOf(tab, "taken by the agent").first().waitFor()
  await page.locator(".bar", { hasText: "no HTTP status" }).waitFor()
  expect(await page.locator(".bar .fill.bad").count()).toBe(0)
})

test("workers are alive, and lanes say what their deliveries wait for", async ({ tab }) => {
  await tab.open("/workers")
  await rowOf(tab, "alive").first().waitFor()
  await rowOf(tab, "absent").locator(".badge.bad", { hasText: "agent not connected" }).waitFor()
  await rowOf(tab, "paused").getByText("paused").first().waitFor()
})

test("a delivery behind another has no time of its own, and its message says why it waits", async ({
  site,
  tab,
}) => {
  const { page } = tab
  const { data } = await site.call("GET", "/app/acme/msg/invoice-17/endpoint")
  const urls = (end: string) => data.find(({ url }: { url: string }) => url.endsWith(end))
  await tab.open(`/deliveries/${urls("/ordered").deliveryId}`)
  await page.getByText(/^Not before (1 h|\d+ min)/).waitFor()
  await tab.open("/messages/acme/invoice-17")
  await page.locator("summary", { hasText: "/ordered" }).getByText("behind another").waitFor()
  await page.locator("summary", { hasText: "/gone" }).getByText("endpoint disabled").waitFor()
})

test("lists name the application of each row", async ({ tab }) => {
  const rows = { "/dead-letters": "HTTP 500", "/keys": "hub", "/sources": "github", "/agents": "absent" }
  for (const [path, text] of Object.entries(rows)) {
    await tab.open(path)
    await rowOf(tab, text).getByRole("link", { name: "Acme Robotics" }).waitFor()
  }
})

test("a policy that ends by age is drawn to its end", async ({ tab }) => {
  await tab.open("/policies")
  await tab.page.getByText(/attempts within 6 d/).waitFor()
})

test("a task leads to its endpoint", async ({ site, tab }) => {
  const { data } = await site.call("GET", "/task")
  await tab.open(`/dead-letters/tasks/${data[0].id}`)
  await tab.page.locator('main a[href^="/endpoints/"]').click()
  await tab.page.getByRole("heading", { level: 1, name: /rejecting/ }).waitFor()
})

test("an id in the search of the top bar leads to its page", async ({ site, tab }) => {
  const { page } = tab
  const { data } = await site.call("GET", "/delivery?limit=1")
  await tab.open("/")
  await page.keyboard.press("/")
  await page.keyboard.type(data[0].id)
  await page.getByRole("list", { name: "Found" }).getByRole("link").first().waitFor()
  await page.keyboard.press("Enter")
  await page.waitForURL(`**/deliveries/${data[0].id}`)
})
