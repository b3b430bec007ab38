/** The cost of the dashboard: from POST to receipt while its overview is open and live in a browser on the same cores, and while it is not. */
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Page } from "playwright-core"
import { openChromium } from "../../test/browser/support/chromium.ts"
import { heapMb } from "../../test/browser/support/renders.ts"
import { PosthornServer } from "../harness/api-servers.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { prepareMessage } from "../harness/prepared.ts"
import { RawClient } from "../harness/raw-client.ts"
import { type Round, race, timed } from "../harness/rounds.ts"
import { NotMeasured } from "../harness/void.ts"

const ENDPOINTS = 100
const BUILD = fileURLToPath(new URL("../../scripts/build-dashboard.mjs", import.meta.url))
const NO_PAGE = "about:blank"

async function measure(bench: Bench): Promise<Values> {
  execFileSync(process.execPath, [BUILD], { stdio: ["ignore", "ignore", "inherit"] })
  const browser = await openChromium().catch((cause) => {
    throw new NotMeasured((cause as Error).message, { cause })
  })
  const posthorn = await PosthornServer.start()
  try {
    await posthorn.createApplication("busy", ENDPOINTS, `${bench.receiver.origin}/ok`)
    const page = await browser.newPage()
    return await measureBeside(bench, posthorn, page)
  } finally {
    await browser.close()
    await posthorn.close()
  }
}

async function measureBeside(bench: Bench, posthorn: PosthornServer, page: Page): Promise<Values> {
  const { origin, key } = posthorn
  await page.goto(origin)
  await page.getByLabel("Key").fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await isLive(page)
  const path = "/api/v1/app/busy/msg"
  const client = await RawClient.open(prepareMessage({ origin, key, path, endpoints: ENDPOINTS }))
  const deliver = async (count: number) => {
    const expected = await bench.receiver.expect(count)
    return timed(count, async () => {
      await client.post(expected.from, count)
      await expected.complete()
    })
  }
  const watched = async (count: number): Promise<Round> => {
    await page.goto(origin)
    await isLive(page)
    return deliver(count)
  }
  const alone = async (count: number): Promise<Round> => {
    await page.goto(NO_PAGE)
    return deliver(count)
  }
  const rounds = await race({ watched, alone }, bench.turns)
  await page.goto(origin)
  await isLive(page)
  await deliver(bench.size(20_000, 1000))
  const heap = await heapMb(page)
  client.close()
  return {
    ...compared("dashboard", rounds.watched, "alone", rounds.alone),
    "dashboard.heapMb": heap,
  }
}

function isLive(page: Page): Promise<void> {
  return page.locator(".topbar .badge.good", { hasText: "live" }).waitFor()
}

export const dashboardPart: Part = { names: ["dashboard.ratio"], run: measure }
