/** Messages, deliveries and dead letters: operators and customers act on them by clicks alone. */
import type { Posthorn } from "../../../src/posthorn.ts"
import type { Receiver } from "../../support/receiver.ts"
import type { Site } from "../support/site.ts"
import { expect, type OpenTab, testOn } from "../support/test.ts"
import { untilSettled } from "../support/world.ts"

/** Given up at the first failure; and one whose failures wait for an hour. */
const ONCE = { delays: [1], maxAttempts: 1, breaker: false } as const
const PATIENT = { delays: [3600, 7200], maxAttempts: 3, breaker: false, budget: false } as const

const test = testOn({ fill })

async function fill(posthorn: Posthorn, receiver: Receiver): Promise<void> {
  await posthorn.applications.create({ uid: "acme", name: "Acme Robotics" })
  await posthorn.eventTypes.create({ name: "invoice.paid", description: "Paid" })
  const create = (uid: string, more: object) =>
    posthorn.endpoints.create("acme", { uid, url: receiver.url(`/${uid}`), ...more })
  await create("good", { eventTypes: ["invoice.paid"] })
  await create("later", { eventTypes: ["invoice.due"], retry: PATIENT })
  await create("down", { eventTypes: ["invoice.lost"], retry: ONCE })
  receiver.always("/later", (_request, response) => {
    response.writeHead(503).end("<h1>closed for lunch</h1>")
  })
  receiver.always("/down", (request, response) => {
    response.writeHead(500).end(`failure of ${request.id}`)
  })
  for (let i = 0; i < 4; i++)
    await posthorn.send("acme", { eventType: "invoice.lost", payload: { i }, tags: ["lost"] })
  await untilSettled(posthorn)
}

const send = (site: Site, eventType: string, payload: object = {}): Promise<{ readonly id: string }> =>
  site.call("POST", "/app/acme/msg", { eventType, payload })

/** A delivery that failed once, and whose next attempt is an hour away. */
async function waitingDelivery(site: Site): Promise<string> {
  const { id } = await send(site, "invoice.due")
  let found: { readonly id: string; readonly status: string } | undefined
  await expect
    .poll(async () => {
      found = (await site.call("GET", `/delivery?msg_id=${id}`)).data[0]
      return found?.status
    })
    .toBe("failed")
  return found!.id
}

test("a message is sent by a form that says what is wrong with its JSON, and keeps large integers", async ({
  tab,
}) => {
  const { page } = tab
  await tab.open("/messages")
  await page.getByRole("link", { name: "Acme Robotics" }).click()
  await page.getByRole("button", { name: "Send a message" }).first().click()
  const dialog = page.getByRole("dialog", { name: "Send a message" })
  await dialog.getByLabel("Event type").fill("invoice.paid")
  await dialog.getByLabel("Payload").fill('{"amount": 12345678901234567890,}')
  await dialog.getByRole("button", { name: "Send", exact: true }).click()
  await dialog.getByText(/The payload is not valid JSON: .*position 32/).waitFor()
  await dialog.getByLabel("Payload").fill('{"amount": 12345678901234567890}')
  await dialog.getByLabel("Event id").fill("the-first")
  await dialog.getByRole("button", { name: "Send", exact: true }).click()
  await page.getByRole("heading", { name: "Message invoice.paid" }).waitFor()
  await page.getByText('"amount": 12345678901234567890').waitFor()
  await page.getByText("delivered").first().waitFor()
  expect(tab.site.receiver.to("/good").at(-1)!.body.toString()).toBe('{"amount":12345678901234567890}')
})

test("a message is sent again to its endpoint, and to one that did not subscribe to it", async ({
  site,
  tab,
}) => {
  const { page } = tab
  const { id } = await send(site, "invoice.paid")
  await expect.poll(() => arrivals(site, "/good", id)).toBe(1)
  await tab.open(`/messages/acme/${id}`)
  await page.getByText("200").first().waitFor()
  await page.getByRole("button", { name: "Resend" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Resend" }).click()
  await page.getByText("The message is on its way again.").waitFor()
  await expect.poll(() => arrivals(site, "/good", id)).toBe(2)
  await page.getByRole("button", { name: "Send to an endpoint" }).click()
  await page
    .getByRole("dialog")
    .getByLabel("Endpoint")
    .selectOption({ label: `later: ${site.receiver.url("/later")}` })
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click()
  await expect.poll(() => arrivals(site, "/later", id)).toBe(1)
})

test("a delivery shows its attempts and why it waits, and is rescheduled, retried and cancelled", async ({
  site,
  tab,
}) => {
  const { page } = tab
  const id = await waitingDelivery(site)
  await tab.open("/deliveries?status=failed")
  await page.locator(`a[href="/deliveries/${id}"]`).click()
  await page.locator(".badge", { hasText: "HTTP 503" }).waitFor()
  await page.getByText(/^Next attempt in (1 h|5\d min)/).waitFor()
  await page.getByText("It waits because the retry policy sets a delay after a failure.").waitFor()
  await page.getByText("<h1>closed for lunch</h1>", { exact: true }).waitFor()
  await page.getByText("First byte").waitFor()

  await page.getByRole("button", { name: "Reschedule" }).click()
  await page.locator("input[name=at]").fill("2099-01-01T12:00")
  await page.getByRole("dialog").getByRole("button", { name: "Reschedule" }).click()
  await page.getByText("The next attempt has another time.").waitFor()
  await page.getByText(/^Next attempt in \d+ d/).waitFor()

  await page.getByRole("button", { name: "Retry now" }).click()
  await page.locator("[data-attempt]").nth(1).waitFor()
  await page.getByRole("button", { name: "Cancel", exact: true }).click()
  await page.getByRole("button", { name: "Cancel the delivery" }).click()
  await page.getByText("because it was cancelled, or its endpoint was deleted.").waitFor()
  expect(await site.call("GET", `/delivery/${id}`)).toMatchObject({ status: "dead", deadReason: "cancelled" })

  site.receiver.queue("/later", 200)
  await page.getByRole("button", { name: "Send again" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click()
  await page.getByText("Delivered", { exact: true }).waitFor()
})

test("selected deliveries are cancelled together", async ({ site, tab }) => {
  const { page } = tab
  const ids = [await waitingDelivery(site), await waitingDelivery(site)]
  await tab.open("/deliveries?status=failed&event_types=invoice.due")
  for (const id of ids) await page.getByLabel(`Select ${id}`).check()
  await page.getByText("2 rows selected").waitFor()
  await page.getByRole("button", { name: "Cancel", exact: true }).click()
  await page.getByRole("button", { name: "Cancel them" }).click()
  await page.getByText("2 deliveries cancelled.").waitFor()
  for (const id of ids) expect((await site.call("GET", `/delivery/${id}`)).deadReason).toBe("cancelled")
})

test("a selected row stays in its place while new deliveries arrive", async ({ site, tab }) => {
  const { page } = tab
  const { id: message } = await send(site, "invoice.paid")
  const row = page.getByRole("row").filter({ has: page.locator(`[title="${message}"]`) })
  await tab.open("/deliveries")
  await tab.live()
  await row.getByRole("checkbox").check()
  // More than a page of them.
  for (let i = 0; i < 55; i++) await send(site, "invoice.paid")
  await page.keyboard.press("r")
  await tab.settled()
  await page.getByText("1 row selected; the list stands still meanwhile").waitFor()
  await row.getByRole("checkbox").uncheck()
  await page.keyboard.press("r")
  await row.waitFor({ state: "detached" })
})

test("dead letters with one cause are counted, sent again as a task, and the task says who started it", async ({
  site,
  tab,
}) => {
  const { page } = tab
  await tab.open("/dead-letters?event_types=invoice.lost")
  const group = page.getByRole("row", { name: /HTTP 500, attempts exhausted/ })
  expect(await group.getByRole("cell").nth(3).textContent()).toBe("4")
  await group.getByRole("link", { name: /HTTP 500/ }).click()
  await page.getByText("failure of").first().waitFor()

  await page
    .getByRole("checkbox", { name: /Select dlv_/ })
    .first()
    .check()
  await page.getByRole("button", { name: "Discard", exact: true }).click()
  await page.getByRole("button", { name: "Discard them" }).click()
  await page.getByText("1 delivery discarded.").waitFor()

  site.receiver.always("/down", 200)
  await page.getByRole("button", { name: "Send all of these again" }).click()
  await page.getByText("3 dead letters fit now.").waitFor()
  await page.getByRole("button", { name: "Send 3 dead letters again" }).click()
  await page.getByRole("heading", { name: /Send dead letters again/ }).waitFor()
  await page.getByText("finished").waitFor()
  await page.getByText("3 changed of 3").waitFor()
  await page.getByText("cause=HTTP 500").waitFor()
  await page.getByRole("link", { name: "Dead letters and tasks" }).click()
  await page.getByRole("row", { name: /Send dead letters again finished/ }).waitFor()
  await expect
    .poll(async () => (await site.call("GET", "/dead-letter/count?event_types=invoice.lost")).count)
    .toBe(0)
})

test("filters that make no sense, and old ids, are explained with a way on", async ({ tab }) => {
  const { page } = tab
  tab.expect(/answered (404|422)/)
  await tab.open("/deliveries?status=lost")
  await page.getByText("status: must be one of pending, failed, delivered, dead.").waitFor()
  await page.getByRole("button", { name: "Clear the filters" }).click()
  await page.getByRole("region", { name: "Deliveries" }).waitFor()
  expect(new URL(page.url()).search).toBe("")

  await tab.open("/dead-letters?after=2026-03-02T00:00:00Z&before=2026-03-01T00:00:00Z")
  await page.getByText("The time “until” must be later than the time “from”.").waitFor()
  await tab.open("/messages?app_id=nobody")
  await page.getByText('there is no application "nobody"').waitFor()
  await page.getByRole("button", { name: "Clear the filters" }).click()
  await page.getByText("Choose the application").waitFor()

  for (const [path, sentence] of [
    ["/deliveries/dlv_gone", "There is no delivery with this id."],
    ["/messages/acme/msg_gone", "There is no message with this id."],
    ["/dead-letters/tasks/qtask_gone", "There is no task with this id."],
  ] as const) {
    await tab.open(path)
    await page.getByText(sentence).waitFor()
  }
})

test("a reader sees everything and has no button that changes something", async ({ site, open }) => {
  const id = await waitingDelivery(site)
  const { id: message } = await send(site, "invoice.paid")
  const tab = await open({ as: "reader" })
  for (const path of [
    "/messages?app_id=acme",
    `/messages/acme/${message}`,
    "/deliveries",
    `/deliveries/${id}`,
    "/dead-letters",
    "/dead-letters?cause=HTTP%20500",
  ]) {
    await tab.open(path)
    const changing = tab.page.getByRole("button", {
      name: /^(send|resend|retry|cancel|reschedule|discard|stop)/i,
    })
    expect(await changing.count(), path).toBe(0)
    expect(await tab.page.getByRole("checkbox").count(), path).toBe(0)
  }
})

test("a customer finds a message and sends it again, if the portal allows it", async ({ site, open }) => {
  const { id } = await send(site, "invoice.paid", { customer: true })
  await expect.poll(() => arrivals(site, "/good", id)).toBe(1)
  const tab = await openPortal(open, ["ViewBase", "CreateAttempts"])
  const { page } = tab
  await tab.open(`/portal/messages?id=${id}`)
  await page.locator(`a[href="/portal/messages/${id}"]`).click()
  await page.getByText('"customer": true').waitFor()
  await page.getByRole("button", { name: "Resend" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Resend" }).click()
  await expect.poll(() => arrivals(site, "/good", id)).toBe(2)

  const viewer = await openPortal(open, ["ViewBase"])
  await viewer.open(`/portal/messages/${id}`)
  await viewer.page.getByText("200").first().waitFor()
  expect(await viewer.page.getByRole("button", { name: /send/i }).count()).toBe(0)
})

function openPortal(open: OpenTab, capabilities: readonly string[]) {
  return open({ as: { portalOf: "acme", access: { capabilities } } })
}

function arrivals(site: Site, path: string, id: string): number {
  return site.receiver.to(path).filter((request) => request.id === id).length
}
