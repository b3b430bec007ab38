/** SQLite copies and deletes its log when the last connection closes: only a Posthorn that knows its file to be sound lets it. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { temporaryFolder } from "../support/combination.ts"
import { Program } from "../support/process.ts"

const HOST = new URL("./ending-child.ts", import.meta.url)

test.for([
  ["exit", true],
  ["throw", true],
  ["close", false],
] as const)("after a host that ended by %s, it is %s that the log is left", async ([how, isLeft]) => {
  const file = join(temporaryFolder(), "posthorn.db")
  const host = Program.start(HOST, [how, `sqlite:${file}`])
  expect((await host.ended).signal).toBeNull()
  expect(existsSync(file)).toBe(true)
  expect(existsSync(`${file}-wal`)).toBe(isLeft)
})
