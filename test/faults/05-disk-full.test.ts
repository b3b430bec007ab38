/** Fault 5: the disk fills up, and later has room again. */
import { cpSync, mkdirSync, rmSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test } from "vitest"
import { fillDisk } from "../support/fill-disk.ts"
import { temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { requireTool } from "../support/tools.ts"
import { Remote } from "./remote.ts"

const DISK_BYTES = 16 * 1024 * 1024

/** A process with a small disk of its own at `folder`, which nobody else sees and which goes when the process ends. */
function startOnSmallDisk(folder: string): Remote {
  // Without root, a user namespace gives the right to mount.
  const namespaces = process.getuid?.() === 0 ? ["--mount"] : ["--map-root-user", "--mount"]
  const mount = `${requireTool("mount")} -t tmpfs -o size=${DISK_BYTES} none "${folder}" && exec "$0" "$@"`
  return Remote.start([
    requireTool("unshare", "util-linux"),
    ...namespaces,
    requireTool("sh", "dash"),
    "-c",
    mount,
  ])
}

async function start() {
  const receiver = await Receiver.start()
  onTestFinished(() => receiver.close())
  const disk = join(temporaryFolder(), "disk")
  mkdirSync(disk)
  const remote = startOnSmallDisk(disk)
  await remote.open({ store: `sqlite:${disk}/posthorn.db`, retry: { delays: [0.05], maxAttempts: 5 } })
  const { posthorn } = remote
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  await posthorn.endpoints.create("acme", { url: receiver.url("/plain") })
  await posthorn.endpoints.create("acme", { url: receiver.url("/ordered"), ordered: true })
  const send = (payload: unknown) => posthorn.send("acme", { eventType: "a", payload })
  // The disk as that process sees it.
  const seen = `/proc/${remote.program.process.pid}/root${disk}`
  return { receiver, remote, posthorn, send, disk, seen, filler: join(seen, "filler") }
}

test("while the disk is full sends are refused and nothing is half-written; with room again it goes on by itself", async () => {
  const { receiver, remote, posthorn, send, disk, seen, filler } = await start()
  const held: (() => void)[] = []
  for (const path of ["/plain", "/ordered"])
    receiver.always(path, (_request, response) => held.push(() => response.end("ok")))
  const accepted: string[] = []
  for (let n = 0; n < 4; n++) accepted.push((await send({ n })).id)
  await receiver.arrived("/plain", 1)
  await receiver.arrived("/ordered", 1)
  expect(await posthorn.health()).toEqual({ ready: true, problem: null })

  fillDisk(filler)
  for (const payload of [{ refused: 1 }, { refused: 2 }, "x".repeat(100_000)])
    await expect(send(payload)).rejects.toMatchObject({
      code: "store_full",
      message: "the disk is full: nothing was written; free some space and try again",
    })
  const together = await Promise.allSettled([
    send({ refused: 3 }),
    send({ refused: 4 }),
    send({ refused: 5 }),
  ])
  expect(together.map((result) => result.status === "rejected" && result.reason.code)).toEqual(
    new Array(3).fill("store_full"),
  )
  expect(await posthorn.health()).toEqual({
    ready: false,
    problem: expect.stringContaining("the disk is full"),
  })
  // Reading goes on, and shows what was accepted and nothing else.
  expect((await posthorn.messages.list("acme")).data.map(({ id }) => id)).toEqual([...accepted].reverse())

  // Answers come in that cannot be written down now.
  for (const path of ["/plain", "/ordered"]) receiver.always(path, 200)
  for (const answer of held) answer()
  await remote.program.line(/Outcomes could not be written; they are kept/)

  rmSync(filler)
  expect(await posthorn.health()).toEqual({ ready: true, problem: null })
  for (let n = 4; n < 8; n++) accepted.push((await send({ n })).id)
  await remote.published("delivery.delivered", accepted.length * 2)
  expect(await posthorn.stats()).toEqual({
    pending: 0,
    failed: 0,
    delivered: accepted.length * 2,
    dead: 0,
    calledOff: 0,
  })
  // Once each: an answer that could not be written at first was not forgotten, and no refused message went out.
  expect(
    receiver
      .to("/plain")
      .map(({ id }) => id)
      .sort(),
  ).toEqual([...accepted].sort())
  expect(receiver.to("/ordered").map(({ id }) => id)).toEqual(accepted)
  expect(remote.program.process.exitCode).toBeNull()

  // A copy, since SQLite would resolve the path through /proc to this process's own root.
  for (const ending of ["", "-wal"]) cpSync(join(seen, `posthorn.db${ending}`), `${disk}.db${ending}`)
  const db = new DatabaseSync(`${disk}.db`)
  expect(db.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
  expect(db.prepare("SELECT count(*) AS n FROM messages").get()).toEqual({ n: accepted.length })
  expect(db.prepare("SELECT count(*) AS n FROM webhook_deliveries").get()).toEqual({ n: accepted.length * 2 })
  db.close()
})

test("a disk with a little room left, too little for a message, is not ready either", async () => {
  const { posthorn, send, filler } = await start()
  fillDisk(filler)
  // Two pages: what a disk that fills up by itself has left.
  truncateSync(filler, statSync(filler).size - 8192)
  await expect(send({ refused: 1 })).rejects.toMatchObject({ code: "store_full" })
  expect(await posthorn.health()).toMatchObject({ ready: false })
  rmSync(filler)
  expect(await posthorn.health()).toMatchObject({ ready: true })
  expect(await send({ n: 1 })).toMatchObject({ matched: 2 })
})
