/**
 * Fault 7: something holds up the event loop for far longer than an attempt may take. The table's 20 seconds are scaled to two,
 * and the policy's time-out with them: what counts is that every deadline has passed when the loop goes on.
 */
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { Remote } from "./remote.ts"

const BLOCK_MS = 2000
/** Longer than all is sent in on a busy machine, and shorter than the loop is blocked. */
const RETRY = { delays: [0.05], maxAttempts: 5, timeout: 1.5 }
const MESSAGES = 30
const PLAIN = 4

async function start(): Promise<{ remote: Remote; receiver: Receiver }> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const store = `sqlite:${join(temporaryFolder(), "posthorn.db")}`
  const remote = await Remote.start().open({ store, retry: RETRY })
  const { applications, endpoints } = remote.posthorn
  await applications.create({ uid: "acme", name: "Acme" })
  for (let i = 0; i < PLAIN; i++) await endpoints.create("acme", { url: receiver.url(`/plain-${i}`) })
  await endpoints.create("acme", { url: receiver.url("/ordered"), ordered: true })
  return { remote, receiver }
}

/** Sends, blocks the loop as soon as every endpoint has a request in flight, and runs `meanwhile` while it is blocked. */
async function blockInTheMiddle(
  remote: Remote,
  receiver: Receiver,
  meanwhile: () => void,
): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < MESSAGES; n++)
    ids.push((await remote.posthorn.send("acme", { eventType: "a", payload: { n } })).id)
  for (let i = 0; i < PLAIN; i++) await receiver.arrived(`/plain-${i}`, 1)
  await receiver.arrived("/ordered", 1)
  const over = remote.order("block", BLOCK_MS)
  await remote.program.line(/^blocked/)
  meanwhile()
  await over
  await remote.published("delivery.delivered", MESSAGES * (PLAIN + 1))
  return ids
}

test("answers that arrive while the loop is blocked count, though their deadline passed: nothing is lost or repeated", async () => {
  const { remote, receiver } = await start()
  const held: (() => void)[] = []
  let holding = true
  for (const path of [...Array(PLAIN).keys()].map((i) => `/plain-${i}`).concat("/ordered"))
    receiver.always(path, (_request, response) => {
      if (holding) held.push(() => response.end("late"))
      else response.end("ok")
    })
  const ids = await blockInTheMiddle(remote, receiver, () => {
    holding = false
    for (const answer of held) answer()
  })
  expect(held.length).toBeGreaterThanOrEqual(PLAIN + 1)
  for (let i = 0; i < PLAIN; i++)
    expect(
      receiver
        .to(`/plain-${i}`)
        .map(({ id }) => id)
        .sort(),
    ).toEqual([...ids].sort())
  expect(receiver.to("/ordered").map(({ id }) => id)).toEqual(ids)
})

test("requests that stay without an answer while the loop is blocked are repeated once, with the same id, and in order", async () => {
  const { remote, receiver } = await start()
  const unanswered = new Set<string>()
  let silent = true
  for (const path of [...Array(PLAIN).keys()].map((i) => `/plain-${i}`).concat("/ordered"))
    receiver.always(path, ({ id }, response) => {
      if (silent) unanswered.add(`${path} ${id}`)
      else response.end("ok")
    })
  const ids = await blockInTheMiddle(remote, receiver, () => {
    silent = false
  })
  const times = Map.groupBy(receiver.requests, ({ path, id }) => `${path} ${id}`)
  expect(times.size).toBe(MESSAGES * (PLAIN + 1))
  expect(unanswered.size).toBeGreaterThanOrEqual(PLAIN + 1)
  for (const [name, requests] of times) expect(requests, name).toHaveLength(unanswered.has(name) ? 2 : 1)
  expect(receiver.to("/ordered").map(({ id }) => id)).toEqual([ids[0], ...ids])
})
