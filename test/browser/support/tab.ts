/** A tab of a real browser. Everything that goes wrong in it is written down, and `check` fails with it. */
import type { BrowserContext, ConsoleMessage, Page, Response } from "playwright-core"
import { expect } from "vitest"
import { openChromium } from "./chromium.ts"
import type { Site } from "./site.ts"

/** `operator` may change everything, `reader` nothing; a customer in the portal may do what the access says. */
export type Role = "operator" | "reader" | { readonly portalOf: string; readonly access?: object }

export interface TabOptions {
  /** Null: nobody. */
  readonly as?: Role | null
  readonly width?: number
  readonly height?: number
  readonly theme?: "light" | "dark"
  readonly timezone?: string
  /** The address of a proxy before the site. */
  readonly through?: string
  /** Runs in each page before its own scripts, beyond its Content-Security-Policy. */
  readonly script?: string
}

const HEIGHT = 900
/** Shorter than the time of a test, so that a failure names the condition. */
const WAIT_MS = 20_000
/** Each is a request that failed, which is noted with its address and status. */
const NETWORK_MESSAGE = /^Failed to load resource/

export class Tab {
  readonly page: Page
  readonly context: BrowserContext
  readonly site: Site
  readonly #origin: string
  readonly #problems: string[] = []
  readonly #expected: RegExp[] = []

  private constructor(site: Site, origin: string, context: BrowserContext, page: Page) {
    this.site = site
    this.#origin = origin
    this.context = context
    this.page = page
  }

  static async open(site: Site, options: TabOptions = {}): Promise<Tab> {
    const { as = "operator", width = 1440, height = HEIGHT, theme = "light" } = options
    const { timezone, script, through = site.url } = options
    const { origin } = new URL(through)
    const browser = await openChromium()
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      reducedMotion: "reduce",
      ...(timezone === undefined ? {} : { timezoneId: timezone }),
    })
    context.setDefaultTimeout(WAIT_MS)
    if (script !== undefined) await context.addInitScript({ content: script })
    if (as !== null) await signIn(context, site, as, origin)
    const tab = new Tab(site, origin, context, await context.newPage())
    await tab.#watch()
    return tab
  }

  /** Another tab of the same browser, with the same cookies. */
  async another(): Promise<Tab> {
    const tab = new Tab(this.site, this.#origin, this.context, await this.context.newPage())
    await tab.#watch()
    return tab
  }

  async show(theme: "light" | "dark", width: number): Promise<void> {
    await this.page.emulateMedia({ colorScheme: theme })
    await this.page.setViewportSize({ width, height: HEIGHT })
  }

  /** Opens a path of the site and resolves when the page shows its data. */
  async open(path: string): Promise<void> {
    await this.page.goto(new URL(path, this.#origin).href)
    await this.settled()
  }

  /** Goes to another page as a link does, without loading the document again. */
  async go(path: string): Promise<void> {
    await this.page.evaluate((to) => {
      history.pushState(null, "", to)
      dispatchEvent(new PopStateEvent("popstate"))
    }, path)
    await this.settled()
  }

  /** Resolves when nothing was loading for three frames: there are no skeletons, and no busy buttons. */
  async settled(): Promise<void> {
    await this.page.waitForFunction(() => {
      const state = globalThis as { settledFrames?: number }
      const isLoading =
        document.querySelector("#app")?.childElementCount === 0 ||
        document.querySelector(".skeleton, [aria-busy=true]") !== null
      state.settledFrames = isLoading ? 0 : (state.settledFrames ?? 0) + 1
      if (state.settledFrames <= 3) return false
      state.settledFrames = 0
      return true
    })
  }

  /** Resolves when the live stream is connected. */
  async live(timeout = WAIT_MS): Promise<void> {
    await this.page.locator(".topbar .badge.good", { hasText: "live" }).waitFor({ timeout })
  }

  /** A problem like this is part of the test. */
  expect(problem: RegExp): void {
    this.#expected.push(problem)
  }

  get problems(): readonly string[] {
    return this.#problems.filter((one) => !this.#expected.some((pattern) => pattern.test(one)))
  }

  /** Fails for errors of the console and the page, refused requests, dialogs, and reports of the Content-Security-Policy. */
  check(where = this.page.url()): void {
    expect(this.problems, where).toEqual([])
  }

  forget(): void {
    this.#problems.length = 0
  }

  async close(): Promise<void> {
    await this.context.close()
  }

  async #watch(): Promise<void> {
    const { page } = this
    const note = (problem: string) => void this.#problems.push(problem)
    page.on("pageerror", (error) => note(`the page threw ${error.stack ?? error.message}`))
    page.on("crash", () => note("the page crashed"))
    page.on("console", (message) => this.#noteMessage(message))
    page.on("response", (response) => this.#noteResponse(response))
    page.on("requestfailed", (request) => {
      const reason = request.failure()?.errorText ?? "unknown"
      // A page that is left ends its own requests.
      if (reason !== "net::ERR_ABORTED") note(`${request.method()} ${request.url()} failed: ${reason}`)
    })
    page.on("request", (request) => {
      const url = new URL(request.url())
      if (url.protocol.startsWith("http") && url.origin !== this.#origin)
        note(`the page asked ${url.origin} for ${url.pathname}`)
    })
    page.on("dialog", (dialog) => {
      note(`a dialog was opened: ${dialog.message()}`)
      void dialog.dismiss().catch(() => {})
    })
    await page.exposeFunction("reportViolation", (text: string) =>
      note(`the Content-Security-Policy reported ${text}`),
    )
    await page.addInitScript(() => {
      const { reportViolation } = globalThis as unknown as { reportViolation(text: string): void }
      document.addEventListener("securitypolicyviolation", (event) => {
        const { violatedDirective, blockedURI, sourceFile, lineNumber, sample } = event
        reportViolation(`${violatedDirective}: ${blockedURI} at ${sourceFile}:${lineNumber} ${sample}`)
      })
    })
  }

  #noteMessage(message: ConsoleMessage): void {
    if (message.type() !== "error" || NETWORK_MESSAGE.test(message.text())) return
    this.#problems.push(`the console shows ${message.text()}`)
  }

  #noteResponse(response: Response): void {
    const status = response.status()
    if (status >= 400)
      this.#problems.push(`${response.request().method()} ${response.url()} answered ${status}`)
  }
}

/** As the page does after a login link, without showing it. */
async function signIn(context: BrowserContext, site: Site, role: Role, origin: string): Promise<void> {
  const isPortal = typeof role === "object"
  const link = isPortal
    ? await site.portalLink(role.portalOf, role.access)
    : await site.loginLink({ readOnly: role === "reader" })
  const response = await fetch(`${site.url}/api/v1/auth/session`, {
    method: "POST",
    headers: { "content-type": "application/json", "posthorn-session": isPortal ? "portal" : "dashboard" },
    body: JSON.stringify({ code: new URL(link).hash.slice("#code=".length) }),
  })
  if (!response.ok) throw new Error(`the login link was refused: ${await response.text()}`)
  const [cookie] = response.headers.getSetCookie()
  const [, name, value] = /^([^=]+)=([^;]+)/.exec(cookie!)!
  await context.addCookies([{ name: name!, value: value!, url: origin, httpOnly: true, sameSite: "Strict" }])
}
