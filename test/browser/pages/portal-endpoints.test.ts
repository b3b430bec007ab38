/** A customer's endpoints in the portal: each capability allows its actions, and no more. */
import type { Tab } from "../support/tab.ts"
import { expect, testOn } from "../support/test.ts"

const test = testOn({
  async fill({ applications, endpoints }, receiver) {
    for (const uid of ["acme", "globex"]) {
      await applications.create({ uid, name: uid })
      await endpoints.create(uid, { uid: "main", url: receiver.url(`/${uid}`) })
    }
  },
})

/** The buttons on the page of an endpoint, without those that copy. */
async function actions({ page }: Tab): Promise<string[]> {
  const texts = await page.getByRole("main").getByRole("button").allTextContents()
  return texts.map((text) => text.trim()).filter((text) => /\w/.test(text))
}

test.for([
  { capabilities: ["ViewBase"], shown: [] },
  { capabilities: ["ViewBase", "ViewEndpointSecret"], shown: ["Show the secret"] },
  { capabilities: ["ViewBase", "ManageEndpointSecret"], shown: ["Show the secret", "Rotate"] },
  { capabilities: ["ViewBase", "CreateAttempts"], shown: ["Send again"] },
  {
    capabilities: ["ViewBase", "ManageEndpoint"],
    shown: ["Pause", "Edit", "Delete", "Trip", "Show the secret", "Rotate", "Set a header"],
  },
])("with $capabilities the page has the buttons $shown", async ({ capabilities, shown }, { open }) => {
  const tab = await open({ as: { portalOf: "acme", access: { capabilities } } })
  await tab.open("/portal/endpoints/main")
  await tab.page.getByRole("heading", { level: 2, name: "Headers" }).waitFor()
  expect(await actions(tab)).toEqual(shown)
})

test("a read-only session has no buttons", async ({ open }) => {
  const tab = await open({ as: { portalOf: "acme", access: { readOnly: true } } })
  await tab.open("/portal/endpoints/main")
  expect(await actions(tab)).toEqual([])
  await tab.open("/portal")
  expect(await actions(tab)).toEqual([])
})

test("a customer creates and edits an endpoint, without the fields of the operator", async ({
  site,
  open,
}) => {
  const tab = await open({ as: { portalOf: "acme" } })
  const { page } = tab
  await tab.open("/portal")
  await page.getByRole("button", { name: "Create an endpoint" }).click()
  await tab.settled()
  for (const field of ["Application", "Retry policy", "Most requests at once"])
    expect(await page.getByLabel(field).count(), field).toBe(0)
  await page.getByLabel("URL").fill(site.receiver.url("/own"))
  await page.getByRole("button", { name: "Create", exact: true }).click()
  await page.getByRole("heading", { level: 1, name: site.receiver.url("/own") }).waitFor()
  expect(page.url()).toContain("/portal/endpoints/ep_")
  await page.getByRole("button", { name: "Edit" }).click()
  await page.getByLabel("Description").fill("The receiver of our shop")
  await page.getByRole("button", { name: "Save" }).click()
  await page.getByText("The receiver of our shop").waitFor()
  const { data } = await site.call("GET", "/app/acme/endpoint")
  expect(data.map(({ description }: { description: string }) => description)).toContain(
    "The receiver of our shop",
  )
})

test("the endpoint of another customer is not there", async ({ site, open }) => {
  const { id } = await site.call("GET", "/app/globex/endpoint/main")
  const tab = await open({ as: { portalOf: "acme" } })
  tab.expect(/answered 404/)
  await tab.open(`/portal/endpoints/${id}`)
  await tab.page.getByText("There is no endpoint with this id.").waitFor()
  await tab.page.getByRole("main").getByRole("link", { name: "Endpoints" }).first().click()
  await tab.page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor()
})
