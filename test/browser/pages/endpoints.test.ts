/** The list of endpoints, and each action of the page of one. */
import { confirm, press, told } from "../support/press.ts"
import type { Site } from "../support/site.ts"
import { expect, testOn } from "../support/test.ts"

const PATIENCE = 60_000
const WAITING_RETRY = { delays: [3600], maxAttempts: 5, breaker: false }

const test = testOn({
  async fill({ applications, endpoints, eventTypes }, receiver) {
    await applications.create({ uid: "acme", name: "Acme Robotics" })
    await applications.create({ uid: "globex", name: "Globex" })
    const schemas = { 1: { type: "object", examples: [{ invoice: 17 }] } }
    for (const name of ["invoice.paid", "user.created"])
      await eventTypes.create({ name, description: "", schemas })
    const create = (uid: string, more: object = {}) =>
      endpoints.create("acme", { uid, url: receiver.url(`/${uid}`), ...more })
    for (const uid of ["main", "edited", "deleted", "secretive"]) await create(uid, { eventTypes: [uid] })
    await create("down", { eventTypes: ["down"], retry: WAITING_RETRY })
    await create("gone", { eventTypes: ["gone"], disabled: true })
    await endpoints.create("globex", { uid: "other", url: receiver.url("/other") })
    await create("limited", { eventTypes: ["limited"], retry: WAITING_RETRY })
    receiver.always("/down", 503)
    receiver.always("/limited", (_request, response) => {
      response.writeHead(429, { "retry-after": "3600" }).end()
    })
  },
})

const bodies = ({ receiver }: Site, path: string) => receiver.to(path).map(({ body }) => body.toString())

test("the list is filtered by application and health, and the address keeps the filters", async ({ tab }) => {
  const { page } = tab
  await tab.open("/endpoints")
  await page.getByLabel("Health").selectOption("disabled")
  await page.getByRole("link", { name: /\/gone$/ }).waitFor()
  await page.getByRole("link", { name: /\/main$/ }).waitFor({ state: "detached" })
  expect(page.url()).toContain("?health=disabled")
  await page.getByLabel("Application").fill("globex")
  await page.keyboard.press("Enter")
  await page.getByText("No endpoint has this health").waitFor()
  await page.goBack()
  await page.getByRole("link", { name: /\/gone$/ }).waitFor()
  await page.reload()
  await page.getByRole("link", { name: /\/gone$/ }).waitFor()
})

test("an endpoint is created with the fields of the form", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints?app_id=globex")
  await press(tab, "Create an endpoint")
  await page.getByLabel("URL").fill("ftp://example.com")
  await confirm(tab, "Create")
  tab.expect(/endpoint answered 422/)
  await page.getByRole("dialog").getByRole("alert").getByText(/url/).waitFor()
  await page.getByLabel("URL").fill(site.receiver.url("/made"))
  await page.getByLabel("Description").fill("Made by hand")
  await page.getByRole("checkbox", { name: "invoice.paid" }).check()
  await page.getByLabel("Most requests in a second").fill("7")
  await page.getByLabel("Retry policy").selectOption("relay")
  await confirm(tab, "Create")
  await page.getByRole("heading", { level: 1, name: site.receiver.url("/made") }).waitFor()
  const { data } = await site.call("GET", "/app/globex/endpoint")
  expect(data.find(({ url }: { url: string }) => url.endsWith("/made"))).toMatchObject({
    description: "Made by hand",
    eventTypes: ["invoice.paid"],
    rateLimit: 7,
    retry: "relay",
    // Of the policy.
    ordered: true,
  })
})

test("an example is sent, and its answer is shown", async ({ site, tab }) => {
  const { page } = tab
  site.receiver.always("/main", (_request, response) => {
    response.writeHead(202, { "content-type": "application/json" }).end('{"taken":true}')
  })
  await tab.open("/endpoints/acme/main")
  await press(tab, "Send an example")
  await page.getByRole("combobox", { name: /^Event type/ }).fill("invoice.paid")
  await confirm(tab, "Send")
  await page.getByText("HTTP 202").first().waitFor()
  await page.getByLabel("Response body", { exact: true }).getByText('"taken": true').waitFor()
  expect(bodies(site, "/main").at(-1)).toBe('{"invoice":17}')

  await press(tab, "Send an example")
  await page.getByLabel("Payload").fill('{"account": 9007199254740993}')
  await confirm(tab, "Send")
  await expect.poll(() => bodies(site, "/main").at(-1)).toBe('{"account":9007199254740993}')
})

test("an endpoint is paused and resumed; what waits for it says so", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/main")
  await press(tab, "Pause")
  await page.getByRole("button", { name: "Resume" }).waitFor()
  await page.locator(".lead .badge", { hasText: "paused" }).waitFor()
  await site.call("POST", "/app/acme/msg", { eventType: "main", payload: { n: "held" } })
  await page.getByText("1 delivery waits because the endpoint is paused.").waitFor({ timeout: PATIENCE })
  await press(tab, "Resume")
  await expect.poll(() => bodies(site, "/main")).toContain('{"n":"held"}')
  await page.locator(".lead .badge", { hasText: "paused" }).waitFor({ state: "detached" })
})

test("the circuit breaker is tripped and reset", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/edited")
  await press(tab, "Trip")
  await page.locator(".lead .badge", { hasText: "breaker open" }).waitFor()
  expect((await site.call("GET", "/app/acme/endpoint/edited")).breaker.state).toBe("open")
  await press(tab, "Reset")
  await page.getByRole("button", { name: "Trip" }).waitFor()
  expect((await site.call("GET", "/app/acme/endpoint/edited")).breaker.state).toBe("closed")
})

test("a Retry-After is ended by Reset, though the circuit breaker is off", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  const { page } = tab
  await site.call("POST", "/app/acme/msg", { eventType: "limited", payload: {} })
  await tab.open("/endpoints/acme/limited")
  const held = page.getByText("Held by Retry-After")
  await held.waitFor()
  site.receiver.always("/limited", 200)
  await press(tab, "Reset")
  await held.waitFor({ state: "detached" })
  expect((await site.call("GET", "/app/acme/endpoint/limited")).heldUntil).toBeNull()
})

test("an outage is seen, explained and ended by sending all that waits", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  const { page } = tab
  for (let n = 0; n < 3; n++) await site.call("POST", "/app/acme/msg", { eventType: "down", payload: { n } })
  await expect.poll(() => site.receiver.to("/down").length).toBe(3)
  await tab.open("/endpoints/acme/down")
  await page.getByText("3 deliveries wait because the retry policy sets a delay after a failure").waitFor()
  await page.getByText("last error: HTTP 503").waitFor()
  site.receiver.always("/down", 200)
  await press(tab, "Send all that waits now")
  await page.getByRole("dialog").getByText("3 deliveries are sent at once").waitFor()
  await confirm(tab, "Send now")
  await told(tab, "3 deliveries are being sent.")
  await expect.poll(() => site.receiver.to("/down").length, { timeout: PATIENCE }).toBe(6)
  await page.getByText("Nothing waits.").waitFor({ timeout: PATIENCE })
})

test("a disabled endpoint is enabled with a choice about what it missed", { timeout: PATIENCE }, async ({
  site,
  tab,
}) => {
  const { page } = tab
  await site.call("POST", "/app/acme/msg", { eventType: "gone", payload: { n: "missed" } })
  await tab.open("/endpoints/acme/gone")
  await press(tab, "Enable")
  await page.getByRole("dialog").getByText("It missed 1 message while it was disabled").waitFor()
  await page.getByLabel("Send them now").check()
  await confirm(tab, "Enable")
  await told(tab, "The endpoint is enabled.")
  await page.getByRole("button", { name: "Pause" }).waitFor()
  await expect.poll(() => bodies(site, "/gone"), { timeout: PATIENCE }).toContain('{"n":"missed"}')
})

test("dead letters of a time are counted and sent again", { timeout: PATIENCE }, async ({ site, tab }) => {
  const { page } = tab
  const url = site.receiver.url("/dead")
  site.receiver.always("/dead", 500)
  await site.call("POST", "/app/acme/endpoint", {
    uid: "dead",
    url,
    eventTypes: ["dead"],
    retry: { delays: [1], maxAttempts: 1, breaker: false },
  })
  await site.call("POST", "/app/acme/msg", { eventType: "dead", payload: { n: "dead" } })
  const dead = async () => (await site.call("GET", "/dead-letter/count?app_id=acme&endpoint_id=dead")).count
  await expect.poll(dead).toBe(1)
  site.receiver.always("/dead", 200)
  await tab.open("/endpoints/acme/dead")
  await press(tab, "Send again")
  await page.getByText("1 dead letter in the last 24 hours would be sent.").waitFor()
  await confirm(tab, "Send again")
  await told(tab, "Its dead letters are being sent.")
  await expect.poll(dead, { timeout: PATIENCE }).toBe(0)
  await expect.poll(() => site.receiver.to("/dead").length).toBe(2)
})

test("an endpoint is edited: only what differs is sent", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/edited")
  await press(tab, "Edit")
  const request = page.waitForRequest((one) => one.method() === "PATCH")
  await page.getByLabel("Description").fill("Changed")
  await page.getByLabel("Channels").fill("eu, us")
  await page.getByRole("checkbox", { name: /In order/ }).check()
  await confirm(tab, "Save")
  await told(tab, "The endpoint is changed.")
  expect((await request).postDataJSON()).toEqual({
    description: "Changed",
    channels: ["eu", "us"],
    ordered: true,
  })
  await page.getByText("one, in order").waitFor()
  expect(await site.call("GET", "/app/acme/endpoint/edited")).toMatchObject({
    description: "Changed",
    channels: ["eu", "us"],
    ordered: true,
  })
  await page.getByRole("cell", { name: "endpoint patch" }).waitFor()
})

test("the secret is shown on demand and rotated", async ({ site, tab }) => {
  const { page } = tab
  const secret = async () => (await site.call("GET", "/app/acme/endpoint/secretive/secret")).key
  const before = await secret()
  await tab.open("/endpoints/acme/secretive")
  expect(await page.content()).not.toContain(before)
  await press(tab, "Show the secret")
  await page.getByText(before).waitFor()
  await press(tab, "Rotate")
  await page.getByLabel("The old secret ends").selectOption("0")
  await confirm(tab, "Rotate")
  await told(tab, "A new secret signs from now on.")
  await page.getByText(before).waitFor({ state: "detached" })
  const after = await secret()
  expect(after).not.toBe(before)
  await page.getByText(after).waitFor()
  await press(tab, "Hide the secret")
  await page.getByText(after).waitFor({ state: "detached" })
})

test("headers are set and removed, and credentials are not shown again", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/secretive")
  for (const [name, value] of [
    ["x-team", "billing"],
    ["authorization", "Bearer abc"],
  ]) {
    await press(tab, "Set a header")
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(name!)
    await page.getByRole("textbox", { name: /^Value/ }).fill(value!)
    await confirm(tab, "Set")
    await told(tab, `The header ${name} is set.`)
  }
  await page.getByRole("row", { name: /x-team billing/ }).waitFor()
  await page.getByRole("row", { name: /authorization not shown/ }).waitFor()
  await page
    .getByRole("row", { name: /x-team/ })
    .getByRole("button")
    .click()
  await confirm(tab, "Remove")
  await told(tab, "The header x-team is removed.")
  expect(await site.call("GET", "/app/acme/endpoint/secretive/headers")).toEqual({
    headers: {},
    sensitive: ["authorization"],
  })
})

test("an endpoint is deleted after a question, and its old address has a way on", async ({ site, tab }) => {
  const { page } = tab
  await tab.open("/endpoints/acme/deleted")
  await press(tab, "Delete")
  await page.getByRole("dialog").getByText("It cannot be brought back.").waitFor()
  await confirm(tab, "Delete")
  await told(tab, "The endpoint is deleted.")
  await page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor()
  await expect(site.call("GET", "/app/acme/endpoint/deleted")).rejects.toThrow("404")
  tab.expect(/deleted.* answered 404/)
  await tab.open("/endpoints/acme/deleted")
  await page.getByText("There is no endpoint with this id.").waitFor()
  await page.getByRole("main").getByRole("link", { name: "Endpoints" }).first().click()
  await page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor()
})

test("a reader sees an endpoint and can change nothing", async ({ open }) => {
  const tab = await open({ as: "reader" })
  await tab.open("/endpoints/acme/main")
  await tab.page.getByRole("heading", { level: 2, name: "Waiting deliveries" }).waitFor()
  const buttons = await tab.page.getByRole("main").getByRole("button").allTextContents()
  expect(buttons.filter((text) => !/^[✓⧉]?$/.test(text.trim()))).toEqual([])
})
