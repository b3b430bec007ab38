/** By plain HTTP beyond loopback a page has no `navigator.clipboard`, and copies in the older way. */
import { PLAIN_HOST } from "./support/chromium.ts"
import { confirm, field, press } from "./support/press.ts"
import { expect, testOn } from "./support/test.ts"

const test = testOn()

test("copy buttons copy, also those in a dialog, and keep the focus", async ({ site, open }) => {
  const through = new URL(site.url)
  through.hostname = PLAIN_HOST
  const tab = await open({ through: through.origin })
  tab.expect(/Cross-Origin-Opener-Policy header has been ignored/)
  const { page } = tab
  const paste = async () => {
    const search = page.getByRole("searchbox", { name: "Find by id, uid or name" })
    await search.fill("")
    await search.press("Control+V")
    return search.inputValue()
  }
  const { id } = await site.call("POST", "/app", { name: "Acme" })
  await tab.open("/applications")
  expect(await page.evaluate(() => isSecureContext)).toBe(false)
  await press(tab, `Copy ${id}`)
  expect(await paste()).toBe(id)

  await tab.open("/keys")
  await press(tab, "New key")
  await field(tab, "Name").fill("billing")
  await confirm(tab, "Create")
  const token = await page.getByRole("dialog").locator("pre").innerText()
  await confirm(tab, "Copy The key")
  const copy = page.getByRole("dialog").getByRole("button", { name: "Copy The key" })
  await copy.getByText("✓").waitFor()
  expect(await copy.evaluate((button) => button === document.activeElement)).toBe(true)
  await page.keyboard.press("Escape")
  expect(await paste()).toBe(token)
})
