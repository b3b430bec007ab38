import { afterEach, expect, test, vi } from "vitest"
import { Harness } from "../support/harness.ts"
import { LogLines } from "../support/log-lines.ts"

afterEach(() => void vi.unstubAllEnvs())

test("a misspelt variable of the library is a warning in its log, and one of the host's own is not", async () => {
  vi.stubEnv("POSTHORN_EGRES_ALLOW", "127.0.0.0/8")
  vi.stubEnv("POSTHORN_DATABASE_URL", "postgres://db")
  const log = new LogLines()
  await Harness.start({ logger: log.logger })
  expect(log.about("the variable").map(({ level, msg }) => [level, msg])).toEqual([
    [
      40,
      "the variable POSTHORN_EGRES_ALLOW is unknown and has no effect; did you mean POSTHORN_EGRESS_ALLOW?",
    ],
  ])
})
