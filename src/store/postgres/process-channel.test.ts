/** Notes between processes: what is heard, what is not, and a connection that dies without a word. */
import { pino } from "pino"
import { expect, onTestFinished, test, vi } from "vitest"
import { FaultProxy } from "../../../test/support/fault-proxy.ts"
import { migratedDatabase } from "../../../test/support/migrated-database.ts"
import { connect, openStore } from "../../../test/support/postgres-store.ts"
import type { Note } from "../../observe/process-channel.ts"
import type { AttemptEvent } from "../../observe/public-events.ts"
import { PostgresProcessChannel } from "./process-channel.ts"

const AT_ONCE_MS = 1000
const changed = (n: number): Note => ({ kind: "changed", endpointId: `ep_${n}`, appId: "app_1" })

/** A process with its notes: those that it heard from others. */
async function join(url: string, logger = pino({ level: "silent" })) {
  const { database } = await openStore(url)
  const processChannel = new PostgresProcessChannel(database, logger)
  onTestFinished(() => processChannel.close())
  const heard: Note[] = []
  await processChannel.start((note) => heard.push(note))
  return { processChannel, heard, database }
}

function attempt(n: number): AttemptEvent {
  const id = `${n}`.padStart(27, "0")
  return {
    type: "delivery.attempt",
    webhook_delivery_id: `dlv_${id}`,
    webhook_id: `ep_${id}`,
    app_id: "app_1",
    org_id: "org_1",
    message_id: `msg_${id}`,
    session_id: null,
    event_type: "invoice.paid",
    attempt_count: 1,
    at: 1_900_000_000_000,
    attempt_id: `atmpt_${id}`,
    success: true,
    response_status: 200,
    error: null,
    duration_ms: 12,
    next_retry_at: null,
    endpoint_disabled: false,
  }
}

test("what somebody else says on the channel harms nobody", async () => {
  const url = await migratedDatabase()
  const [one, other] = [await join(url), await join(url)]
  const client = await connect(url)
  const { rows } = await client.query("SELECT relnamespace FROM pg_class WHERE relname = 'lanes'")
  const say = (payload: string) =>
    client.query("SELECT pg_notify(channel, $2) FROM unnest(ARRAY['posthorn', $1]) AS channel", [
      `posthorn_${rows[0].relnamespace}`,
      payload,
    ])
  const strange = [{ kind: "changed" }, { kind: "events", events: [null] }, { kind: "new one" }, null, "due"]
  for (const payload of [
    "",
    "hello",
    "null",
    "[]",
    '{"from":1}',
    JSON.stringify({ from: "me", notes: strange }),
  ])
    await say(payload)
  // Proof that it is the channel that they listen to.
  await say(JSON.stringify({ from: "me", notes: [changed(1)] }))
  one.processChannel.post(changed(2))
  await expect.poll(() => other.heard).toEqual([changed(1), changed(2)])
  await expect.poll(() => one.heard).toEqual([changed(1)])
})

test("two installations in one database do not hear each other", async () => {
  const url = await migratedDatabase()
  const [red, blue] = [`${url}?schema=red`, `${url}?schema=blue`]
  const [sender, reader, stranger] = [await join(red), await join(red), await join(blue)]
  sender.processChannel.post(changed(1))
  await expect.poll(() => reader.heard).toEqual([changed(1)])
  stranger.processChannel.post(changed(2))
  const neighbour = await join(blue)
  stranger.processChannel.post(changed(3))
  await expect.poll(() => neighbour.heard).toContainEqual(changed(3))
  expect(stranger.heard).toEqual([])
  expect(reader.heard).toEqual([changed(1)])
})

test("ten thousand events of one moment reach another process within seconds, each once and in order", async () => {
  const url = await migratedDatabase()
  const [one, other] = [await join(url), await join(url)]
  const all = Array.from({ length: 10_000 }, (_, n) => attempt(n))
  for (const event of all) one.processChannel.post({ kind: "events", events: [event] })
  const heard = () => other.heard.flatMap((note) => (note.kind === "events" ? note.events : []))
  await expect.poll(() => heard().length, { timeout: 5 * AT_ONCE_MS }).toBe(10_000)
  expect(heard()).toEqual(all)
})

test("more than can wait are dropped, the oldest first, and the log says so once", async () => {
  const url = await migratedDatabase()
  const lines: string[] = []
  const logger = pino({ level: "warn" }, { write: (line: string) => lines.push(line) })
  const [one, other] = [await join(url, logger), await join(url)]
  for (let n = 0; n < 13_000; n++) one.processChannel.post({ kind: "events", events: [attempt(n)] })
  const heard = () => other.heard.flatMap((note) => (note.kind === "events" ? note.events : []))
  await expect.poll(heard, { timeout: 5 * AT_ONCE_MS }).toContainEqual(attempt(12_999))
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ dropped: 13_000 - heard().length, msg: expect.stringContaining("too fast") }),
  ])
})

test("in a black hole it closes within moments", async () => {
  const url = await migratedDatabase()
  const { hostname, port } = new URL(url)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  const { processChannel } = await join(proxy.through(url))
  proxy.blackHole()
  const closingAt = performance.now()
  await processChannel.close()
  expect(performance.now() - closingAt).toBeLessThan(2 * AT_ONCE_MS)
})

test("a connection that died without a word is found out, and made anew", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
  onTestFinished(() => void vi.useRealTimers())
  const url = await migratedDatabase()
  const [one, other] = [await join(url), await join(url)]
  const client = await connect(url)
  const listening =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ~ '^LISTEN'"
  const pids = async () => (await client.query(listening)).rows.map(({ pid }) => pid)
  const before = await pids()
  expect(before).toHaveLength(2)
  // In the order of the notes: whoever heard the answer has heard its own question.
  one.processChannel.post(changed(1))
  await expect.poll(() => other.heard).toContainEqual(changed(1))
  other.processChannel.post(changed(2))
  await expect.poll(() => one.heard).toContainEqual(changed(2))
  one.processChannel.post(changed(3))
  await expect.poll(() => other.heard).toContainEqual(changed(3))
  // They stay connected and hear nothing more.
  const deaf = vi.spyOn(JSON, "parse").mockImplementation(() => null)
  const renewed = async () => {
    vi.advanceTimersByTime(5000)
    return (await pids()).filter((pid) => !before.includes(pid))
  }
  await expect.poll(renewed, { timeout: 10 * AT_ONCE_MS }).toHaveLength(2)
  deaf.mockRestore()
  one.processChannel.post(changed(4))
  await expect.poll(() => other.heard).toContainEqual(changed(4))
})

test("when the server is back it listens again at once, also on a connection that seems to be well", async () => {
  const url = await migratedDatabase()
  const { hostname, port } = new URL(url)
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  const [one, other] = [await join(proxy.through(url)), await join(url)]
  const isUp = new Promise<void>((resolve) => one.database.onUp(resolve))
  proxy.reset()
  await isUp
  await expect.poll(() => one.heard).toContainEqual({ kind: "due" })
  other.processChannel.post(changed(1))
  await expect.poll(() => one.heard).toContainEqual(changed(1))
})
