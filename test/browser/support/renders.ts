/** The costs of a live page in its browser: renders, layout shifts, and memory. */
import type { Page } from "playwright-core"

/** For `TabOptions.script`. Changes in one frame are one render. Text, so that the benchmark needs no types of a browser. */
export const COUNT_RENDERS = `
  globalThis.renders = []
  globalThis.jump = 0
  addEventListener("DOMContentLoaded", () => {
    let isNoted = false
    new MutationObserver(() => {
      if (isNoted) return
      isNoted = true
      renders.push(performance.now())
      requestAnimationFrame(() => { isNoted = false })
    }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) jump = Math.max(jump, value)
    }).observe({ type: "layout-shift" })
  })
`

export interface Rendered {
  readonly perSecond: number
  /** In any second. */
  readonly most: number
  /** The largest layout shift, as Chromium scores it. A row more at the top of a table has 0.1, another text in its place 0.001. */
  readonly jump: number
}

/** Since the last call. */
export async function rendersOf(page: Page): Promise<Rendered> {
  const { times, ms, jump } = (await page.evaluate(`(() => {
    const since = globalThis.countedFrom ?? 0
    const ms = performance.now() - since
    globalThis.countedFrom = performance.now()
    const seen = { times: renders.splice(0), ms, jump }
    jump = 0
    return seen
  })()`)) as { times: number[]; ms: number; jump: number }
  const most = times.map((from) => times.filter((time) => time >= from && time < from + 1000).length)
  return { perSecond: times.length / (ms / 1000), most: Math.max(0, ...most), jump }
}

/** The heap after a garbage collection, in megabytes. */
export async function heapMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send("HeapProfiler.collectGarbage")
  const { usedSize } = await session.send("Runtime.getHeapUsage")
  await session.detach()
  return usedSize / 1_048_576
}
