/** Applications, event types, policies, keys and sessions: an operator configures them by clicks alone. */
import { badge, confirm, field, GONE, press, rowOf, told } from "../support/press.ts"
import { expect, testOn } from "../support/test.ts"

const test = testOn({
  async fill({ applications, endpoints, eventTypes }, receiver) {
    await applications.create({ uid: "acme", name: "Acme Robotics" })
    await applications.create({ uid: "leaving", name: "Leaving" })
    await endpoints.create("acme", { uid: "main", url: receiver.url("/main") })
    await eventTypes.create({ name: "invoice.paid", description: "Paid" })
  },
})

test("an application is created, edited and deleted", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/applications")
  await press(tab, "New application")
  await field(tab, "Name").fill("Initech")
  await field(tab, "Uid").fill("not a uid")
  tab.expect(/app answered 422/)
  await confirm(tab, "Create")
  await page.getByRole("dialog").getByRole("alert").getByText(/uid/).waitFor()
  await field(tab, "Uid").fill("initech")
  await field(tab, "Rate limit").fill("50")
  await field(tab, "Metadata").fill('{"plan": "pro"}')
  await confirm(tab, "Create")
  await page.getByRole("heading", { level: 1, name: "Initech" }).waitFor()
  expect(await site.call("GET", "/app/initech")).toMatchObject({ rateLimit: 50, metadata: { plan: "pro" } })
  await press(tab, "Edit")
  await field(tab, "Name").fill("Initrode")
  await confirm(tab, "Save")
  await page.getByRole("heading", { level: 1, name: "Initrode" }).waitFor()
  await tab.open("/applications/leaving")
  await press(tab, "Delete")
  tab.expect(GONE)
  await confirm(tab, "Delete the application")
  await told(tab, "Leaving is deleted.")
  await rowOf(tab, "Acme Robotics").waitFor()
  expect(await rowOf(tab, "Leaving").count()).toBe(0)
})

test("a portal link is created with capabilities, opens the portal once, and its session is ended", async ({
  site,
  tab,
  open,
}) => {
  const { page } = tab
  await tab.open("/applications/acme")
  await press(tab, "Create a link")
  await page.getByRole("checkbox", { name: "Create, change and delete endpoints" }).uncheck()
  await confirm(tab, "Create")
  const link = await page.getByLabel("The link", { exact: true }).innerText()
  const customer = await open({ as: null })
  await customer.open(link)
  await customer.page.getByRole("link", { name: site.receiver.url("/main") }).waitFor()
  expect(customer.page.url()).toBe(`${site.url}/portal`)
  expect(await customer.page.getByRole("button", { name: "Create an endpoint" }).count()).toBe(0)
  await page.getByRole("button", { name: "Close" }).click()
  await press(tab, "End all access")
  await confirm(tab, "End all access")
  await told(tab, "All portal access of Acme Robotics has ended.")
  customer.expect(/answered 401/)
  await customer.page.getByText(/Your session has ended/).waitFor()
})

test("an event type is created with a schema, deprecated and deleted", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/event-types")
  await press(tab, "New event type")
  await field(tab, "Name").fill("order.sent")
  await field(tab, "Description").fill("An order left")
  await field(tab, "JSON schemas").fill("{1}")
  await confirm(tab, "Create")
  await page
    .getByRole("dialog")
    .getByRole("alert")
    .getByText(/The schemas is not valid JSON/)
    .waitFor()
  await field(tab, "JSON schemas").fill('{"1": {"type": "object"}}')
  await confirm(tab, "Create")
  await page.getByRole("heading", { level: 2, name: "Schema, version 1" }).waitFor()
  await press(tab, "Edit")
  await page.getByRole("checkbox", { name: /^Deprecated/ }).check()
  await confirm(tab, "Save")
  await badge(tab, "deprecated").waitFor()
  expect(await site.call("GET", "/event-type/order.sent")).toMatchObject({
    ...{ deprecated: true, description: "An order left" },
    schemas: { 1: { type: "object" } },
  })
  await press(tab, "Delete")
  tab.expect(GONE)
  await confirm(tab, "Delete the event type")
  await told(tab, "order.sent is deleted.")
})

test("a policy is drawn while it is written, created, edited and deleted", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/policies")
  await press(tab, "New policy")
  await field(tab, "Name").fill("patient")
  await field(tab, "Policy").fill('{"delays": [60, 600], "maxAttempts": 3}')
  await page.getByRole("dialog").getByText("3 attempts within 11 min").waitFor()
  await confirm(tab, "Save")
  await page.getByRole("heading", { level: 1, name: "patient" }).waitFor()
  await page.getByText("retry 1 after 1 min").waitFor()
  await press(tab, "Edit")
  await field(tab, "Policy").fill('{"delays": [60], "maxAttempts": 2}')
  await confirm(tab, "Save")
  await expect.poll(() => page.getByText(/^retry \d+ after/).count()).toBe(1)
  expect((await site.call("GET", "/retry-policy/patient")).policy).toMatchObject({ maxAttempts: 2 })
  await press(tab, "Delete")
  tab.expect(GONE)
  await confirm(tab, "Delete the policy")
  await told(tab, "The policy patient is deleted.")
  await tab.open("/policies/standard")
  await page.getByText("preset, cannot be changed").waitFor()
})

test("a key is created, shown once and revoked; the session that it opened ends", async ({
  site,
  tab,
  open,
}) => {
  const { page } = tab
  await tab.open("/keys")
  await press(tab, "New key")
  await field(tab, "Name").fill("reports")
  await field(tab, "Scope").selectOption("read")
  await confirm(tab, "Create")
  const key = await page.getByLabel("The key", { exact: true }).innerText()
  await page.getByRole("button", { name: "Close" }).click()
  const reader = await open({ as: null })
  reader.expect(/answered 401/)
  await reader.page.goto(site.url)
  await reader.page.getByLabel("Key").fill(key)
  await reader.page.getByRole("button", { name: "Sign in" }).click()
  await reader.page.getByText("reports (read-only)").waitFor()
  await tab.open("/sessions")
  await rowOf(tab, "reports").waitFor()
  await tab.open("/keys")
  await rowOf(tab, "reports").getByRole("button").click()
  await confirm(tab, "Revoke the key")
  await told(tab, "reports is revoked.")
  await rowOf(tab, "reports").getByText("revoked").waitFor()
  await reader.page.keyboard.press("r")
  await reader.page.getByText(/Your session has ended/).waitFor()
})

test("keys are shown of all, of one application, or of none", async ({ site, tab }) => {
  const { page } = tab
  await site.call("POST", "/key", { name: "customer", scope: "application", appId: "acme" })
  await tab.open("/keys")
  await rowOf(tab, "customer").waitFor()
  await page.getByLabel("Belongs to").selectOption("The organization only")
  await rowOf(tab, "customer").waitFor({ state: "detached" })
  await rowOf(tab, "POSTHORN_API_KEY").waitFor()
  await tab.go("/keys?app_id=acme")
  await rowOf(tab, "POSTHORN_API_KEY").waitFor({ state: "detached" })
  await rowOf(tab, "customer").waitFor()
})

test("a session is ended from the list, and every change says who made it", async ({ tab, open }) => {
  const other = await open({ as: "reader" })
  await other.open("/")
  other.expect(/answered 401/)
  await tab.open("/sessions")
  const reading = rowOf(tab, "POSTHORN_API_KEY").filter({ hasText: /dashboard\s*ViewBase/ })
  await reading.getByRole("button").first().click()
  await confirm(tab, "End the session")
  await told(tab, "The session has ended.")
  await other.page.keyboard.press("r")
  await other.page.getByText(/Your session has ended/).waitFor()
  await tab.open("/changes")
  const row = tab.page.getByRole("row").filter({ hasText: "session" }).first()
  await row.getByText("POSTHORN_API_KEY").waitFor()
})

test("the settings in force say where each comes from, without secrets", async ({ tab }) => {
  const { page } = tab
  await tab.open("/settings")
  const row = rowOf(tab, "store").first()
  await row.getByText("environment").waitFor()
  expect(await page.getByRole("main").innerText()).not.toContain("the-key-of-the-browser-tests")
})

test("a reader sees the configuration and has no button that changes it", async ({ open }) => {
  const tab = await open({ as: "reader" })
  for (const path of ["/applications/acme", "/event-types/invoice.paid", "/policies", "/keys", "/sessions"]) {
    await tab.open(path)
    const names = await tab.page.getByRole("main").getByRole("button").allInnerTexts()
    expect(
      names.filter((name) => /[a-z]/i.test(name)),
      path,
    ).toEqual([])
  }
})
