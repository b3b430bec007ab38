import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { MessageChannel } from "node:worker_threads"
import { expect, onTestFinished, test, vi } from "vitest"
import { Checkpoints } from "./checkpoints.ts"
import { Connection } from "./connection.ts"
import { Copier } from "./copier.ts"
import { markFailedSync } from "./failed-sync.ts"

const LONG_LOG = 1000
const PAGES = 50

/** A writer that commits 50 pages at a time, and a copier that is told where the file is, or none that answers. */
function stage(copied?: string | null) {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-checkpoints-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, "posthorn.db")
  const connection = new Connection(path)
  connection.db.exec("CREATE TABLE pages (content BLOB)")
  connection.syncItself()
  const { port1, port2 } = new MessageChannel()
  const copier = copied === null ? null : new Copier(copied ?? path, port2)
  const checkpoints = new Checkpoints(connection, port1, LONG_LOG)
  const close = () => {
    copier?.close()
    connection.close()
    port1.close()
  }
  const commit = () => {
    connection.sql("BEGIN IMMEDIATE").run()
    for (let i = 0; i < PAGES; i++) connection.sql("INSERT INTO pages VALUES (randomblob(4000))").run()
    connection.commit()
    checkpoints.committed()
  }
  const log = () =>
    connection.sql("PRAGMA wal_checkpoint(NOOP)").get() as { readonly log: number; checkpointed: number }
  return {
    path,
    connection,
    port2,
    close,
    commit,
    log,
    commitUntil(isSo: () => boolean): Promise<void> {
      return vi.waitFor(
        () => {
          commit()
          expect(isSo()).toBe(true)
        },
        { interval: 1, timeout: 10_000 },
      )
    },
  }
}

test("a long log is copied by another connection, without the writer", async () => {
  const { connection, close, commit, log } = stage()
  onTestFinished(close)
  failWith(connection, new Error("the writer copies"))
  while (log().log < LONG_LOG) commit()
  const { log: written } = log()
  await vi.waitFor(() => expect(log().checkpointed).toBe(written), { timeout: 10_000 })
})

test("the log starts over again and again under constant writes", async () => {
  const { close, log, commitUntil } = stage()
  onTestFinished(close)
  let longest = 0
  for (let turns = 0; turns < 3; turns++) {
    await commitUntil(() => log().log >= LONG_LOG)
    await commitUntil(() => {
      longest = Math.max(longest, log().log)
      return log().log < LONG_LOG
    })
  }
  expect(longest).toBeLessThan(4 * LONG_LOG)
})

test("the log grows behind a reader of an old snapshot, and starts over after it", async () => {
  const { path, close, log, commitUntil } = stage()
  onTestFinished(close)
  const reader = new DatabaseSync(path)
  reader.exec("BEGIN; SELECT count(*) FROM pages")
  await commitUntil(() => log().log >= 3 * LONG_LOG)
  reader.close()
  await commitUntil(() => log().log < LONG_LOG)
})

test("closed after the copier, the writer leaves no log behind", async () => {
  const { path, close, log, commitUntil } = stage()
  await commitUntil(() => log().checkpointed > 0)
  close()
  expect(existsSync(`${path}-wal`)).toBe(false)
  expect(statSync(path).size).toBeGreaterThan(LONG_LOG * 4000)
})

test.each([
  ["cannot open the file", "/nowhere/posthorn.db"],
  ["never answers", null],
])("where the copier %s, the writer copies the log in the end", async (_what, copied) => {
  const { close, log, commitUntil } = stage(copied)
  onTestFinished(close)
  await commitUntil(() => log().log >= LONG_LOG)
  await commitUntil(() => log().log < LONG_LOG)
})

test("a file that failed in the copier is not used any more", async () => {
  const { port2, close, commit, log } = stage(null)
  onTestFinished(close)
  while (log().log < LONG_LOG) commit()
  port2.postMessage({ failed: "disk I/O error" })
  await vi.waitFor(() => expect(commit).toThrow("the database file failed (disk I/O error)"))
})

test("without room for a copy, commits are kept and the copy is retried", async () => {
  const { connection, close, log, commitUntil } = stage()
  onTestFinished(close)
  const full = Object.assign(new Error("database or disk is full"), { errcode: 13 })
  const copying = failWith(connection, full)
  await commitUntil(() => copying.mock.results.some(({ value }) => value === full))
  copying.mockRestore()
  await commitUntil(() => log().log < LONG_LOG)
})

test("a file that cannot be synced is not used any more", async () => {
  const { connection, close, commit, log } = stage()
  onTestFinished(close)
  failWith(connection, Object.assign(new Error("disk I/O error"), { errcode: 1034 }))
  const commitAll = async () => {
    while (log().log < 4 * LONG_LOG) {
      commit()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await expect(commitAll()).rejects.toMatchObject({ code: "store_failed" })
})

test("after a sync that failed in another process the log is not copied", async () => {
  const { path, close, commit, log } = stage()
  onTestFinished(close)
  markFailedSync(path)
  const commitAll = () => {
    while (log().log < 2 * LONG_LOG) commit()
  }
  expect(commitAll).toThrow("a sync failed in another process")
  expect(log().checkpointed).toBe(0)
})

/** The writer's own copying. */
function failWith(connection: Connection, error: Error) {
  const prepare = connection.sql.bind(connection)
  return vi.spyOn(connection, "sql").mockImplementation((text) => {
    if (text.includes("PASSIVE")) throw error
    return prepare(text)
  })
}
