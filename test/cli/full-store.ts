/** An SQLite store with something of everything in it, left behind by a process that was killed while it was sending. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { MessageInput, Posthorn } from "../../src/index.ts"
import { Remote } from "../faults/remote.ts"
import { temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"

const ONCE = { delays: [60], maxAttempts: 1, breaker: false } as const
const LATER = { delays: [3600], maxAttempts: 5, breaker: false } as const
/** Its messages are the bulk: enough for several chunks of each table. */
const MANY = 2500
const WARM_UP = 20
export const IN_LINE = 60
export const BINARY = new Uint8Array(Array.from({ length: 256 }, (_, i) => 255 - i))
const INBOUND = {
  sourceId: "src_1",
  method: "PUT",
  path: "/a%20b",
  query: "?q=1",
  headers: [["X-A", "ü"]],
} as const
export const KEYED: MessageInput = {
  eventType: "many",
  payload: { keyed: true },
  idempotencyKey: "key-before",
}

export interface FullStore {
  readonly file: string
  readonly receiver: Receiver
  /** The answer that the message with the idempotency key got. */
  readonly keyedId: string
  readonly secret: string
}

export async function fullStore(): Promise<FullStore> {
  const file = join(temporaryFolder(), "posthorn.db")
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  receiver.always("/many", 200)
  receiver.always("/dead", 500)
  receiver.always("/later", (_request, response) => {
    response.writeHead(503)
    response.end("nicht verfügbar 🦀")
  })
  receiver.queue("/hangs", ...Array.from({ length: WARM_UP }, () => 200))
  receiver.always("/hangs", () => {})
  const remote = await Remote.start().open({ store: `sqlite:${file}`, logger: "silent" })
  const { posthorn } = remote
  await createEndpoints(posthorn, receiver)
  const send = (eventType: string, more: Partial<MessageInput> = {}) =>
    posthorn.send("acme", { eventType, payload: { eventType, n: 1 }, ...more })

  const sendMany = (eventType: string, count: number) =>
    posthorn.sendBatch(
      "acme",
      Array.from({ length: count }, (_, n) => ({ eventType, payload: { n }, sessionId: `s${n}` })),
    )

  // A lane begins with one request at a time: with these it earns more. Before the many, beside which it would be held at two.
  await sendMany("hangs", WARM_UP)
  await remote.published("delivery.delivered", WARM_UP)
  for (let n = 0; n < MANY; n += 100) await sendMany("many", 100)
  const { id: keyedId } = await posthorn.send("acme", KEYED)
  const bytes = {
    eventType: "many",
    payload: BINARY,
    contentType: "application/x-all-bytes",
    eventId: "bytes",
  }
  await posthorn.send("acme", bytes, { inbound: INBOUND })
  await send("many", { payload: "Grüße 🦀 от 世界", metadata: { ключ: "значение" }, channels: ["north"] })
  await send("nobody.wants")
  for (let n = 0; n < 20; n++) await send("dead", { payload: { n } })
  for (let n = 0; n < 5; n++) await send("later", { payload: { n }, maxAttempts: 3 })
  await remote.published("delivery.delivered", MANY + 3 + WARM_UP)
  await remote.published("delivery.dead", 20)

  const { data } = await posthorn.dead.list({ limit: 10 })
  for (const { id } of data) await posthorn.dead.discard(id)
  for (const eventType of ["paused", "line"]) await posthorn.endpoints.pause("acme", eventType)
  for (let n = 0; n < IN_LINE; n++) await send("line", { payload: { n } })
  await send("line", { payload: "not yet", delaySeconds: 3600 })
  for (let n = 0; n < 30; n++)
    await send("paused", { payload: { n }, priority: n % 2 === 0 ? "high" : "low" })
  await send("deferred", { delaySeconds: 3600 })
  await posthorn.endpoints.pause("acme", "gone")
  for (let n = 0; n < 3; n++) await send("gone")
  await posthorn.endpoints.delete("acme", "gone")
  await remote.published("delivery.dead", 23)
  await posthorn.applications.create({ uid: "closed", name: "Closed" })
  await posthorn.applications.delete("closed")
  await sendMany("hangs", 3)
  await receiver.arrived("/hangs", WARM_UP + 3)
  const { key: secret } = await posthorn.endpoints.secret("acme", "paused")
  await remote.program.kill()
  return { file, receiver, keyedId, secret }
}

async function createEndpoints(posthorn: Posthorn, receiver: Receiver): Promise<void> {
  await posthorn.applications.create({ uid: "acme", name: "Acme Übersee", metadata: { tier: "gold" } })
  await posthorn.policies.put("patient", LATER)
  const create = (eventType: string, more = {}) =>
    posthorn.endpoints.create("acme", {
      uid: eventType,
      url: receiver.url(`/${eventType}`),
      eventTypes: [eventType, "all.of-them"],
      ...more,
    })
  await create("many", { concurrency: 100, headers: { "x-kept": "yes" }, description: "für\0alle" })
  await create("dead", { retry: ONCE })
  await create("later", { retry: "patient" })
  await create("line", { ordered: true })
  await create("paused", { channels: null, rateLimit: 1000 })
  await create("deferred")
  await create("gone")
  await create("hangs", { concurrency: 3, channels: null })
  await posthorn.sources.create("acme", { name: "github", verification: "github", secret: "s3cret" })
  await create("north", { channels: ["north", "south"], disabled: true })
}

/** The file and its log, byte by byte. */
export function bytesOf(file: string): string[] {
  return [file, `${file}-wal`]
    .filter((name) => existsSync(name))
    .map((name) => createHash("sha256").update(readFileSync(name)).digest("hex"))
}
