/** `test` with a site for each file, and tabs that are checked and closed after each test. */
import { test as base } from "vitest"
import { Site, type SiteOptions } from "./site.ts"
import { Tab, type TabOptions } from "./tab.ts"

export { expect } from "vitest"

export type OpenTab = (options?: TabOptions) => Promise<Tab>

/** Tests on a site of this kind, which the tests of the file share. */
export function testOn(options: SiteOptions = {}) {
  return (
    base
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures are used
      .extend("site", { scope: "file" }, async ({}, { onCleanup }) => {
        const site = await Site.start(options)
        onCleanup(() => site.close())
        return site
      })
      .extend("open", async ({ site }, { onCleanup }): Promise<OpenTab> => {
        const tabs: Tab[] = []
        onCleanup(async () => {
          await Promise.all(tabs.map((tab) => tab.close()))
          for (const tab of tabs) tab.check()
        })
        return async (tabOptions) => {
          const tab = await Tab.open(site, tabOptions)
          tabs.push(tab)
          return tab
        }
      })
      .extend("tab", ({ open }): Promise<Tab> => open())
  )
}
