/** Times in the reader's zone, and copying where the browser has no clipboard API. */
import { expect, testOn } from "./support/test.ts"

const test = testOn({
  async fill({ applications }) {
    await applications.create({ uid: "acme", name: "Acme" })
  },
})

test("a time is exact on hover, in the reader's zone and in UTC", async ({ site, open }) => {
  const timeZone = "Pacific/Kiritimati"
  const tab = await open({ timezone: timeZone })
  const { createdAt } = (await site.call("GET", "/app")).data[0]
  await tab.open("/applications")
  const title = await tab.page.locator("main tbody time").first().getAttribute("title")
  const local = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "medium", timeZone })
  // Versions of ICU differ in the kind of space before PM.
  const spaced = (text: string) => text.replaceAll(/[^\S\n]/g, " ")
  expect(spaced(title!)).toBe(spaced(`${local.format(new Date(createdAt))}\n${createdAt}`))
})

test("an id is copied, also on plain HTTP", async ({ site, open }) => {
  // Beyond loopback browsers have no clipboard API without TLS.
  const script = `Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined })`
  const tab = await open({ script })
  const { page } = tab
  const { id } = (await site.call("GET", "/app")).data[0]
  await tab.open("/applications")
  await page.getByRole("button", { name: `Copy ${id}` }).click()
  await page.keyboard.press("/")
  await page.keyboard.press("Control+V")
  expect(await page.locator("[data-search]:focus").inputValue()).toBe(id)
})
