/** The dashboard's defences, tried from a browser: its policies, frames around it, and requests from pages of other origins. */
import type { Page } from "playwright-core"
import { onTestFinished } from "vitest"
import { openChromium } from "./support/chromium.ts"
import { Site } from "./support/site.ts"
import { Stranger } from "./support/stranger.ts"
import { expect, testOn } from "./support/test.ts"

const test = testOn()

const POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self'",
  "connect-src": "'self'",
  "worker-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  "trusted-types": "posthorn",
}

test.for([
  "/",
  "/endpoints",
  "/deliveries/dlv_1",
  "/portal",
  "/portal/endpoints",
])("the page at %s has a strict policy", async (path, { site }) => {
  const { status, headers } = await fetch(site.url + path)
  const directives = headers
    .get("content-security-policy")!
    .split("; ")
    .map((one) => /^(\S+) (.*)$/.exec(one)!.slice(1))
  expect({ status, policy: Object.fromEntries(directives) }).toEqual({ status: 200, policy: POLICY })
  expect(Object.fromEntries(headers)).toMatchObject({
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
  })
})

/** Scripts, styles and markup as an injection would add them, by name. */
const INJECTIONS = {
  script() {
    const script = document.createElement("script")
    script.textContent = "globalThis.ran = true"
    document.body.append(script)
  },
  handler() {
    const image = document.createElement("img")
    image.setAttribute("onerror", "globalThis.ran = true")
    image.src = "/no-such-image"
    document.body.append(image)
  },
  style() {
    document.body.setAttribute("style", "--injected: yes")
  },
  markup() {
    document.body.insertAdjacentHTML("beforeend", "<b id=injected>markup</b>")
  },
  evaluation() {
    setTimeout("globalThis.ran = true")
  },
  link() {
    const link = document.createElement("a")
    link.href = "javascript:void(globalThis.ran = true)"
    document.body.append(link)
    link.click()
  },
}

test.for(Object.entries(INJECTIONS))("an injected %s is refused and reported", async ([, inject], {
  tab,
}) => {
  const { page } = tab
  await page.goto(tab.site.url)
  // Some throw, as they do in an attack.
  await page.evaluate(inject).catch(() => {})
  await expect.poll(() => tab.problems.join()).toContain("Content-Security-Policy reported")
  const effect = await page.evaluate(() => ({
    ran: "ran" in globalThis,
    isStyled: getComputedStyle(document.body).getPropertyValue("--injected") !== "",
    isMarkup: document.querySelector("#injected") !== null,
  }))
  expect(effect).toEqual({ ran: false, isStyled: false, isMarkup: false })
  tab.expect(/Content.Security.Policy|Trusted(HTML|Script)|no-such-image/)
})

/** Shows the address in a frame of the page, and tells whether its document was loaded. */
async function isFramed(page: Page, stranger: Stranger, address: string): Promise<boolean> {
  await page.goto(stranger.show(`<iframe src="${address}"></iframe>`))
  return page.frames()[1]!.url() === address
}

test("a page of another origin cannot show the dashboard or the portal in a frame", async ({ site, tab }) => {
  const stranger = await Stranger.start()
  const page = await tab.context.newPage()
  for (const path of ["/", "/endpoints", "/portal"])
    expect(await isFramed(page, stranger, site.url + path), path).toBe(false)
})

test("only the portal, and only in pages of portal.frameAncestors, is shown in a frame", async () => {
  const [customer, stranger] = [await Stranger.start(), await Stranger.start()]
  const site = await Site.start({ environment: { POSTHORN_PORTAL_FRAME_ANCESTORS: customer.origin } })
  onTestFinished(() => site.close())
  const page = await (await openChromium()).newPage()
  onTestFinished(() => page.context().close())
  expect(await isFramed(page, customer, `${site.url}/portal`)).toBe(true)
  expect(await isFramed(page, customer, `${site.url}/`)).toBe(false)
  expect(await isFramed(page, stranger, `${site.url}/portal`)).toBe(false)
})

test("a portal in the frame of another site works without cookies, and is live", {
  timeout: 60_000,
}, async () => {
  const customer = await Stranger.start()
  // Another site than 127.0.0.1: browsers keep the portal's cookies from the server there.
  const origin = customer.origin.replace("127.0.0.1", "localhost")
  const site = await Site.start({
    environment: { POSTHORN_PORTAL_FRAME_ANCESTORS: origin },
    async fill({ applications }) {
      await applications.create({ uid: "acme", name: "Acme" })
    },
  })
  onTestFinished(() => site.close())
  const context = await (await openChromium()).newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  customer.show(`<iframe width="1200" height="800" src="${await site.portalLink("acme")}"></iframe>`)
  await page.goto(origin)
  const portal = page.frameLocator("iframe")
  await portal.getByRole("button", { name: "Create an endpoint" }).first().waitFor()
  await portal.locator(".topbar .badge.good", { hasText: "live" }).waitFor()
  expect(new URL(page.frames()[1]!.url()).hash).toBe("")
  expect(await context.cookies()).toEqual([])
})

/** Requests of a stranger's page with the operator's cookie. Each tries to create an application. */
const FORGERIES: { readonly [name: string]: (url: string) => Promise<string> } = {
  "a form": async (url) => {
    const form = document.createElement("form")
    form.method = "post"
    form.action = url
    form.enctype = "text/plain"
    form.target = "answer"
    const field = document.createElement("input")
    field.name = '{"name":"forged","x":"'
    field.value = '"}'
    form.append(field)
    const frame = document.createElement("iframe")
    frame.name = "answer"
    document.body.append(frame, form)
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }))
    form.submit()
    await loaded
    return "sent"
  },
  "a request that needs no preflight": (url) =>
    fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body: '{"name":"forged"}' }).then(
      ({ type }) => type,
    ),
  "a request with the header of a session": (url) =>
    fetch(url, {
      method: "POST",
      credentials: "include",
      headers: { "content-type": "application/json", "posthorn-session": "dashboard" },
      body: '{"name":"forged"}',
    }).then(
      ({ status }) => `answered ${status}`,
      () => "refused",
    ),
  "a request without credentials": (url) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "posthorn-session": "dashboard" },
      body: '{"name":"forged"}',
    }).then(({ status }) => `answered ${status}`),
}
const FATES = ["sent", "opaque", "refused", "answered 401"]

test("the operator's cookie creates an application from the dashboard itself", async ({ site, tab }) => {
  const page = await tab.context.newPage()
  await page.goto(site.url)
  const forge = FORGERIES["a request with the header of a session"]!
  expect(await page.evaluate(forge, `${site.url}/api/v1/app`)).toBe("answered 201")
  const { data } = await site.call("GET", "/app")
  for (const { id } of data) await site.call("DELETE", `/app/${id}`)
})

test.for(
  Object.entries(FORGERIES).map(([name, forge], i) => [name, forge, FATES[i]!] as const),
)("%s from another origin changes nothing with the operator's cookie", async ([, forge, fate], {
  site,
  tab,
}) => {
  const page = await tab.context.newPage()
  await page.goto((await Stranger.start()).show("<p>Free prizes</p>"))
  const statuses: number[] = []
  page.on("response", (response) => {
    if (response.url().endsWith("/api/v1/app") && response.request().method() === "POST")
      statuses.push(response.status())
  })
  expect(await page.evaluate(forge, `${site.url}/api/v1/app`)).toBe(fate)
  // The browser itself keeps back the request that needs a preflight.
  expect(statuses).toEqual(fate === "refused" ? [] : [401])
  expect((await site.call("GET", "/app")).data).toEqual([])
})

test("a page of another origin cannot read with the operator's cookie", async ({ site, tab }) => {
  const page = await tab.context.newPage()
  await page.goto((await Stranger.start()).show("<p>Free prizes</p>"))
  const read = await page.evaluate(
    (url) =>
      fetch(url, { credentials: "include", headers: { "posthorn-session": "dashboard" } }).then(
        ({ status }) => `answered ${status}`,
        () => "refused",
      ),
    `${site.url}/api/v1/app`,
  )
  expect(read).toBe("refused")
})
