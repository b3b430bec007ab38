/** Properties of SQLite alone: one process owns the file, and the file has everything. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openPosthorn, PosthornError } from "../../src/index.ts"
import { Harness, LOOPBACK, temporaryFolder } from "../support/harness.ts"

test("a file has one owner, also under another name", async () => {
  const harness = await Harness.start({ encryptionKey: "ab".repeat(32) })
  symlinkSync(harness.file, `${harness.file}.link`)
  const again = openPosthorn({
    store: `sqlite:${harness.file}.link`,
    encryptionKey: "ab".repeat(32),
    egress: LOOPBACK,
  })
  await expect(again).rejects.toMatchObject({ code: "store_in_use" })
})

test("after a clean close everything is in the one file", async () => {
  const harness = await Harness.start()
  await harness.endpoint()
  await harness.send()
  await harness.published("delivery.delivered", 1)
  await harness.close()
  expect(existsSync(`${harness.file}-wal`)).toBe(false)
})

test("secrets are not readable in the file", async () => {
  const harness = await Harness.start()
  const id = await harness.endpoint()
  const { key } = await harness.posthorn.endpoints.secret("acme", id)
  expect(key).toMatch(/^whsec_/)
  await harness.close()
  expect(readFileSync(harness.file).includes(key.slice(6))).toBe(false)
})

test("a file that cannot be opened or is no database says so", async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, "folder.db"))
  writeFileSync(join(folder, "text.db"), "plain text, not a database; ".repeat(100))
  await expect(openPosthorn({ store: `sqlite:${join(folder, "folder.db")}` })).rejects.toBeInstanceOf(
    PosthornError,
  )
  await expect(openPosthorn({ store: `sqlite:${join(folder, "text.db")}` })).rejects.toMatchObject({
    code: "store_failed",
  })
  await expect(openPosthorn({ store: `sqlite:${join(folder, "text.db", "x.db")}` })).rejects.toBeInstanceOf(
    PosthornError,
  )
})

test("in memory works, and keeps nothing", async () => {
  const posthorn = await openPosthorn({ store: "sqlite::memory:" })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  expect((await posthorn.applications.list()).data).toHaveLength(1)
  await posthorn.close()
})
