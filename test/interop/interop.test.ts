/** The short form of `npm run interop`: the servers that most machines have, without the case that waits for a server's idle timeout. */
import { describe, expect, test } from "vitest"
import { CASES } from "./cases.ts"
import { runServer } from "./run.ts"
import { findServer, SERVERS } from "./servers.ts"

const { "idle close": _waits, ...QUICK } = CASES

describe.each(
  SERVERS.filter(({ program }) => program === "node" || program === "python3"),
)("$name", (kind) => {
  const program = findServer(kind)

  test.skipIf(program === null)(
    `gets every request and is understood${program === null ? ": not installed" : ""}`,
    async () => {
      const { cells } = await runServer(kind, program!, QUICK)
      expect(Object.entries(cells).filter(([, cell]) => cell.startsWith("✗"))).toEqual([])
    },
  )
})
