import fs, { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test, vi } from "vitest"
import { Connection } from "./connection.ts"

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-connection-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function open(path: string): Connection {
  const connection = new Connection(path)
  onTestFinished(() => connection.close())
  connection.db.exec("CREATE TABLE IF NOT EXISTS t (a)")
  connection.syncItself()
  return connection
}

test("a statement is prepared once, and the cache of statements is bounded", () => {
  const connection = new Connection(":memory:")
  const one = connection.sql("SELECT 1 AS n")
  expect(connection.sql("SELECT 1 AS n")).toBe(one)
  for (let n = 2; n <= 1002; n++) connection.sql(`SELECT ${n} AS n`)
  expect(connection.sql("SELECT 1 AS n")).not.toBe(one)
  expect(one.get()).toEqual({ n: 1 })
  connection.close()
})

test("a commit syncs the log when this or another connection has written", () => {
  const path = join(temporaryFolder(), "posthorn.db")
  const [connection, other] = [open(path), open(path)]
  const synced = vi.spyOn(fs, "fdatasyncSync")
  syncBuiltinESMExports()
  onTestFinished(() => {
    synced.mockRestore()
    syncBuiltinESMExports()
  })
  const syncs = (by: Connection, text: string) => {
    const before = synced.mock.calls.length
    by.db.exec("BEGIN IMMEDIATE")
    by.db.exec(text)
    by.commit()
    return synced.mock.calls.length - before
  }
  expect(syncs(connection, "INSERT INTO t VALUES (1)")).toBe(1)
  expect(syncs(connection, "SELECT * FROM t")).toBe(0)
  expect(syncs(connection, "UPDATE t SET a = 2")).toBe(1)
  expect(syncs(other, "INSERT INTO t VALUES (3)")).toBe(1)
  expect(syncs(connection, "SELECT * FROM t")).toBe(1)
  expect(syncs(connection, "SELECT * FROM t")).toBe(0)
})

test("the log is found through a link and a URI", () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, "elsewhere"))
  symlinkSync(join(folder, "elsewhere", "real.db"), join(folder, "link.db"))
  for (const path of [join(folder, "link.db"), `file:${join(folder, "uri.db")}`]) {
    const connection = open(path)
    connection.db.exec("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    expect(() => connection.commit()).not.toThrow()
  }
})
