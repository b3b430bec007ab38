/** Live pages while many messages come: they render at most four times a second, keep little memory, and delay nothing. */
import { setTimeout as delay } from "node:timers/promises"
import { onTestFinished } from "vitest"
import type { Posthorn } from "../../src/posthorn.ts"
import { rounds } from "../support/length.ts"
import type { Receiver } from "../support/receiver.ts"
import { COUNT_RENDERS, heapMb, rendersOf } from "./support/renders.ts"
import type { Site } from "./support/site.ts"
import { expect, testOn } from "./support/test.ts"

const test = testOn({ fill })
const SECONDS = rounds(6, 60)
const WARM_UP_MS = 3000
/** 100 messages a second are 500 attempts. */
const BATCH = 10
const PERIOD_MS = 100
const MOST_RENDERS_PER_SECOND = 4
/** Chromium collects in steps: a page that keeps every event of a minute grows by more. */
const MOST_GROWTH_MB = 8
const LARGEST_JUMP = 0.05
const PAGES = ["/", "/live", "/deliveries"]

async function fill({ applications, endpoints }: Posthorn, receiver: Receiver): Promise<void> {
  await applications.create({ uid: "acme", name: "Acme" })
  for (const [uid, status] of Object.entries({ good: 200, bad: 500, gone: 404 })) {
    receiver.always(`/${uid}`, status)
    const retry = { delays: [0.2], maxAttempts: 2, breaker: false } as const
    await endpoints.create("acme", { uid, url: receiver.url(`/${uid}`), retry })
  }
}

/** Sends batches at a fixed pace until it is told to end; resolves with the number of messages. */
function startLoad(site: Site): () => Promise<number> {
  let isOver = false
  const messages = Array.from({ length: BATCH }, (_, n) => ({ eventType: "invoice.paid", payload: { n } }))
  const send = async () => {
    let sent = 0
    for (let due = performance.now(); !isOver; due += PERIOD_MS) {
      await delay(Math.max(0, due - performance.now()))
      await site.call("POST", "/app/acme/msg/batch", { messages })
      sent += BATCH
    }
    return sent
  }
  const sending = send()
  return () => {
    isOver = true
    return sending
  }
}

// One tab alone: Chromium draws tabs in the background less often.
test.for(PAGES)(
  "%s stays calm under load",
  { timeout: (2 * SECONDS + 60) * 1000 },
  async (path, { site, open }) => {
    const tab = await open({ script: COUNT_RENDERS })
    const { page } = tab
    await tab.open(path)
    await tab.live()
    const stop = startLoad(site)
    onTestFinished(() => void stop())
    await page.waitForTimeout(WARM_UP_MS)
    const before = await heapMb(page)
    await rendersOf(page)
    await page.waitForTimeout(SECONDS * 1000)
    const { perSecond, jump } = await rendersOf(page)
    const growth = (await heapMb(page)) - before
    const sent = await stop()
    expect(sent).toBeGreaterThan(BATCH * SECONDS)
    expect.soft(perSecond, "renders per second").toBeLessThanOrEqual(MOST_RENDERS_PER_SECOND)
    expect.soft(growth, "megabytes of growth").toBeLessThan(MOST_GROWTH_MB)
    expect.soft(jump, "layout shift").toBeLessThan(LARGEST_JUMP)
  },
)
