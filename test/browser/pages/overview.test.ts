/** The overview says whether all is well and, if not, names the problems and links to them. */
import { expect, testOn } from "../support/test.ts"

const PATIENCE = 120_000
const ONCE = { delays: [1], maxAttempts: 1, breaker: false }

const test = testOn({
  async fill({ applications, endpoints }, receiver) {
    await applications.create({ uid: "acme", name: "Acme Robotics" })
    await endpoints.create("acme", { uid: "main", url: receiver.url("/main") })
  },
})

test("all is well, then an outage is seen live, explained, and found by its link", {
  timeout: PATIENCE,
}, async ({ site, tab }) => {
  const { page } = tab
  const reports: string[] = []
  page.on("request", (request) => {
    if (request.url().includes("/statistics/cost")) reports.push(request.url())
  })
  await tab.open("/")
  const attention = page.getByRole("region", { name: "Is all well?" })
  await attention.getByText("All is well: 1 endpoint").waitFor({ timeout: PATIENCE })
  await tab.live()
  await site.call("POST", "/app/acme/msg", { eventType: "user.created", payload: { n: 0 } })
  // The newest second with a message, in the table that stands beside the chart.
  const rates = page.getByRole("table", { name: /in each second/ })
  const delivered = rates.locator("tbody tr td:nth-child(3)")
  await expect
    .poll(async () => (await delivered.allTextContents()).some((text) => Number(text) > 0), {
      timeout: PATIENCE,
    })
    .toBe(true)

  site.receiver.always("/failing", 500)
  await site.call("POST", "/app/acme/endpoint", {
    uid: "failing",
    url: site.receiver.url("/failing"),
    retry: ONCE,
  })
  for (let n = 1; n <= 6; n++)
    await site.call("POST", "/app/acme/msg", { eventType: "user.created", payload: { n } })
  await attention.getByRole("link", { name: "1 endpoint fails." }).waitFor({ timeout: PATIENCE })
  await attention.getByRole("link", { name: /6 deliveries were given up/ }).waitFor()
  await page.getByRole("row", { name: /\/failing.*failing.*last 6 attempts failed/ }).waitFor()
  await page.getByRole("link", { name: "attempts exhausted" }).waitFor()
  await page.getByText(/13 attempts for 7 deliveries/).waitFor({ timeout: PATIENCE })
  expect(reports).toEqual([])
  await page.getByRole("button", { name: "Show the report of 7 days" }).click()
  await page.getByText("Time of senders").waitFor({ timeout: PATIENCE })
  await page.getByText(/13 attempts for 7 deliveries/).waitFor()
  expect(reports).toHaveLength(1)
  tab.check()
  await attention.getByRole("link", { name: "1 endpoint fails." }).click()
  await page.getByRole("heading", { level: 1, name: site.receiver.url("/failing") }).waitFor()
  await page.goBack()
  await page.getByRole("link", { name: "attempts exhausted" }).click()
  await page.getByRole("heading", { level: 1, name: "Dead letters" }).waitFor()
  expect(page.url()).toContain("dead_reason=exhausted")
})
