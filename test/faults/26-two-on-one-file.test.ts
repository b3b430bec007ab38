/** Fault 26: two processes on one SQLite file. One owns it and delivers; another is refused, or works beside it and delivers nothing. */
import { existsSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test } from "vitest"
import type { PosthornError } from "../../src/index.ts"
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts"
import { temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { Remote } from "./remote.ts"

const ONCE = { delays: [60], maxAttempts: 1 }

function newStore(): string {
  return `sqlite:${join(temporaryFolder(), "posthorn.db")}`
}

async function startReceiver(): Promise<Receiver> {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  return receiver
}

test("a second process is refused with store_in_use and told who owns the file", async () => {
  const store = newStore()
  const owner = await Remote.start().open({ store })
  const error: PosthornError = await Remote.start()
    .open({ store })
    .then(
      () => expect.unreachable("the second one opened"),
      (error) => error,
    )
  expect(error.code).toBe("store_in_use")
  expect(error.message).toContain(
    `is in use by another Posthorn (process ${owner.program.process.pid} on ${hostname()}): stop it`,
  )
  expect(await owner.posthorn.health()).toEqual({ ready: true, problem: null })
})

test("after the owner was killed another process opens the file at once and delivers what it left", async () => {
  const receiver = await startReceiver()
  receiver.always("/", () => {})
  const store = newStore()
  const owner = await Remote.start().open({ store })
  await owner.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await owner.posthorn.endpoints.create("acme", { url: receiver.url("/") })
  const { id } = await owner.posthorn.send("acme", { eventType: "a", payload: {} })
  await receiver.arrived("/", 1)
  const heir = Remote.start()
  await expect(heir.open({ store })).rejects.toMatchObject({ code: "store_in_use" })
  await owner.program.kill()
  receiver.always("/", 200)
  await heir.open({ store })
  await heir.published("delivery.delivered", 1)
  expect(receiver.to("/").map((request) => request.id)).toEqual([id, id])
})

test("a process that does not deliver lists, sends and retries beside the owner, who delivers it at the next poll", async () => {
  const receiver = await startReceiver()
  receiver.always("/", 500)
  const store = newStore()
  const owner = await Remote.start().open({ store, retry: ONCE, pollIntervalMs: 50, logger: "silent" })
  await owner.posthorn.applications.create({ uid: "acme", name: "Acme" })
  await owner.posthorn.endpoints.create("acme", { url: receiver.url("/") })
  const dead: string[] = []
  for (let n = 0; n < 3; n++)
    dead.push((await owner.posthorn.send("acme", { eventType: "a", payload: n })).id)
  await owner.published("delivery.dead", 3)
  receiver.always("/", 200)

  const { posthorn } = await Remote.start().open({ store, deliver: false })
  const letters = await posthorn.dead.list()
  expect(letters.data.map(({ messageId }) => messageId).sort()).toEqual([...dead].sort())
  const one = letters.data[0]!
  await posthorn.dead.retry(one.id)
  await owner.published("delivery.delivered", 1)
  expect(await posthorn.deliveries.get(one.id)).toMatchObject({ status: "delivered" })

  const task = await posthorn.dead.retryMany({ app: "acme" })
  expect(task).toMatchObject({ action: "retry", total: 2 })
  await owner.published("delivery.delivered", 3)
  expect(await posthorn.tasks.get(task.id)).toMatchObject({ status: "finished", changed: 2 })

  const { id, matched } = await posthorn.send("acme", { eventType: "a", payload: "from beside" })
  expect(matched).toBe(1)
  await owner.published("delivery.delivered", 4)
  expect(receiver.requests.at(-1)).toMatchObject({ id })
  expect(await posthorn.stats()).toEqual({ pending: 0, failed: 0, delivered: 4, dead: 0, calledOff: 0 })
})

test("an endpoint created beside the owner gets the owner's next message", async () => {
  const receiver = await startReceiver()
  const store = newStore()
  const owner = await Remote.start().open({ store })
  await owner.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const send = () => owner.posthorn.send("acme", { eventType: "a", payload: {} })
  expect(await send()).toMatchObject({ matched: 0 })
  const guest = await Remote.start().open({ store, deliver: false })
  await guest.posthorn.endpoints.create("acme", { url: receiver.url("/") })
  expect(await send()).toMatchObject({ matched: 1 })
  await receiver.arrived("/", 1)
})

test("of two that start at once on a new file exactly one owns it, and the tables are made once", async () => {
  const [one, two] = [Remote.start(), Remote.start()]
  for (let round = 0; round < 5; round++) {
    const store = newStore()
    const opened = await Promise.allSettled([one.open({ store }), two.open({ store })])
    expectOneOwner(opened)
    expectMigratedOnce(store)
    await (opened[0]!.status === "fulfilled" ? one : two).posthorn.close()
  }
})

test("an owner and a guest that start at once on a new file both open it", async () => {
  const [owner, guest] = [Remote.start(), Remote.start()]
  for (let round = 0; round < 5; round++) {
    const store = newStore()
    await Promise.all([owner.open({ store }), guest.open({ store, deliver: false })])
    expectMigratedOnce(store)
    await Promise.all([owner.posthorn.close(), guest.posthorn.close()])
  }
})

test("two that open a new file within the same millisecond do not get into each other's way", async () => {
  const [one, two] = [Remote.start(), Remote.start()]
  for (let round = 0; round < 40; round++) {
    const store = newStore()
    const path = store.slice("sqlite:".length)
    const second = round % 2 === 0 ? "owner" : "guest"
    const at = Date.now() + 10
    const met = await Promise.allSettled([
      one.order("meet", { path, role: "owner" }, at),
      two.order("meet", { path, role: second }, at),
    ])
    if (second === "owner") expectOneOwner(met)
    else expect(met.map(describeResult)).toEqual(["opened", "opened"])
    expectMigratedOnce(store)
    await Promise.all([one.order("part"), two.order("part")])
  }
})

function describeResult(result: PromiseSettledResult<unknown>): string {
  return result.status === "fulfilled" ? "opened" : `${result.reason.code}: ${result.reason.message}`
}

function expectOneOwner(results: PromiseSettledResult<unknown>[]): void {
  expect(results.map(describeResult).sort()).toEqual([
    "opened",
    expect.stringMatching(/^store_in_use: .* is in use by another Posthorn \(.*\): stop it/),
  ])
}

/** A migration that ran twice would have failed on the tables of the first. */
function expectMigratedOnce(store: string): void {
  const file = store.slice("sqlite:".length)
  expect(existsSync(file)).toBe(true)
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: MIGRATIONS.length })
    expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" })
  } finally {
    db.close()
  }
}
