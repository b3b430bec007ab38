/** Fault 20: a receiver that sends too much does not slow down the others. What becomes of its own requests is in `20-floods.test.ts`. */
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { FLOODS } from "../support/hostile.ts"
import { Program } from "../support/process.ts"
import { Receiver } from "../support/receiver.ts"
import { request, transport } from "./attack.ts"

/** One hostile program for all tests of this file. */
let hostileUrl = ""
beforeAll(async () => {
  const program = Program.start(new URL("./hostile-child.ts", import.meta.url), [], { talks: true })
  hostileUrl = (await program.line(/^at /)).slice("at ".length)
  return async () => void (await program.kill())
})

test.each(Object.keys(FLOODS))("a healthy receiver beside %s is served as fast as alone", async (path) => {
  const healthy = await Receiver.start()
  onTestFinished(() => healthy.close())
  const http = transport()
  const ROUNDS = 21
  const REQUESTS = 100
  const medianMs = async (beside: boolean): Promise<number> => {
    const taken: number[] = []
    // Were it read until its deadline, it would last longer than all of them.
    const flood = beside ? http.send(request(`${hostileUrl}${path}`, "ep_hostile", 2000)) : null
    for (let i = 0; i < REQUESTS; i++) {
      const startedAt = performance.now()
      await http.send(request(healthy.url("/")))
      taken.push(performance.now() - startedAt)
    }
    await flood
    return median(taken)
  }
  await medianMs(true)
  const ratios: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // One right after the other, so that both see the same machine, and each first every other time.
    const before = round % 2 === 0 ? await medianMs(false) : null
    const beside = await medianMs(true)
    ratios.push(beside / (before ?? (await medianMs(false))))
  }
  expect(median(ratios)).toBeLessThan(1.2)
})

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}
