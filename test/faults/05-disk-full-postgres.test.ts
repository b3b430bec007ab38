/** Fault 5 on PostgreSQL: its disk fills up, and later has room again. */
import { rmSync, statfsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { open, Site } from "../multi-process/site.ts"
import { fillDisk } from "../support/fill-disk.ts"
import { ownPostgres } from "../support/servers/postgres.ts"

const DISK_BYTES = 150 * 1024 * 1024
const FULL = {
  code: "store_full",
  message: "PostgreSQL's disk is full: nothing was written; free some space and try again",
}
/** Too large for a page that has room: the table must grow. */
const LARGE = "x".repeat(200_000)

test("while the disk is full sends are refused as store_full; with room again everything goes on without a restart", async () => {
  const server = await ownPostgres({ diskBytes: DISK_BYTES })
  const place = { store: server.url }
  const site = await Site.open(place, { maxPayloadBytes: 1_000_000 })
  for (const lane of ["plain", "ordered"]) await site.endpoint(lane, { ordered: lane === "ordered" })
  const worker = await open(place)
  const answers = ["plain", "ordered"].map((lane) => site.receiver.hold(`/${lane}`))
  const accepted = { plain: [] as string[], ordered: [] as string[] }
  for (const lane of ["plain", "ordered"] as const) {
    for (let n = 0; n < 3; n++) accepted[lane].push(await site.send(lane, n))
    await site.receiver.arrived(`/${lane}`, 1)
  }

  const filler = join(server.dataDirectory, "filler")
  fillDisk(filler)
  expect(statfsSync(server.dataDirectory).bavail).toBe(0)
  await expect(site.send("plain", LARGE)).rejects.toMatchObject(FULL)
  const together = await Promise.allSettled(Array.from({ length: 5 }, () => site.send("plain", LARGE)))
  for (const result of together) expect(result).toMatchObject({ status: "rejected", reason: FULL })
  // Answers come in while nothing can be written.
  for (const answer of answers) answer(200)
  // Reading goes on, and shows what was accepted and nothing else.
  const shown = (await site.sender.messages.list("acme")).data.map(({ id }) => id)
  expect(shown.sort()).toEqual([...accepted.plain, ...accepted.ordered].sort())

  rmSync(filler)
  for (const lane of ["plain", "ordered"] as const)
    for (let n = 3; n < 6; n++) accepted[lane].push(await site.send(lane, LARGE))
  await expect
    .poll(() => worker.stats(), { timeout: 10_000 })
    .toEqual({ pending: 0, failed: 0, delivered: 12, dead: 0, calledOff: 0 })
  // Once each: an answer that could not be written at first was not forgotten.
  expect(site.receiver.to("/ordered").map(({ id }) => id)).toEqual(accepted.ordered)
  expect(
    site.receiver
      .to("/plain")
      .map(({ id }) => id)
      .sort(),
  ).toEqual(accepted.plain.sort())
})

test("while the disk is full it is not ready, and with room again it is", async () => {
  const server = await ownPostgres({ diskBytes: DISK_BYTES })
  const { sender } = await Site.open({ store: server.url })
  expect(await sender.health()).toEqual({ ready: true, problem: null })
  const filler = join(server.dataDirectory, "filler")
  fillDisk(filler)
  await expect(sender.send("acme", { eventType: "a", payload: LARGE })).rejects.toMatchObject(FULL)
  expect(await sender.health()).toEqual({ ready: false, problem: FULL.message })
  rmSync(filler)
  expect(await sender.health()).toEqual({ ready: true, problem: null })
})
