import { expect, test } from "vitest"
import type { Endpoint } from "../store/store.ts"
import { previewEnabling } from "./enabling.ts"
import type { ResourceContext } from "./resource-context.ts"

const DISABLED_AT = 1000

/** An application with this many messages, the newest ones since the endpoint was disabled. */
function contextWith(total: number, since: number) {
  let read = 0
  const listMessages = async (_filter: object, { limit, from }: { limit: number; from: number | null }) => {
    const newest = from === null ? total : from - 1
    const seqs = Array.from({ length: Math.min(limit, newest) }, (_, i) => newest - i)
    read += seqs.length
    return seqs.map((seq) => ({
      seq,
      receivedAt: seq > total - since ? DISABLED_AT : DISABLED_AT - 1,
      eventType: seq % 2 === 0 ? "even" : "odd",
      channels: [],
      expunged: false,
    }))
  }
  const store = { listLanes: async () => [], listMessages }
  return { context: { store } as unknown as ResourceContext, read: () => read }
}

const ENDPOINT = {
  id: "ep_1",
  appId: "app_1",
  disabled: true,
  disabledAt: DISABLED_AT,
  disabledReason: "manual",
  eventTypes: ["even"],
  channels: null,
} as unknown as Endpoint

test.each([
  ["none", 0, 0, 0, false],
  ["a few", 100, 10, 5, false],
  ["none of many", 1_000_000, 0, 0, false],
  ["some of many", 1_000_000, 2500, 1250, false],
  ["all that are looked at, and more", 1_000_000, 1_000_000, 5000, true],
])("%s: the messages that it missed are counted, ten thousand at most", async (_what, ...numbers) => {
  const [total, since, missed, missedIsLowerBound] = numbers
  const { context, read } = contextWith(total, since)
  expect(await previewEnabling(context, ENDPOINT)).toMatchObject({ missed, missedIsLowerBound })
  expect(read()).toBeLessThanOrEqual(Math.min(10_000, since + 2000))
})
