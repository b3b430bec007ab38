/** Settings as the programs take them from the environment: what is warned of, and what is refused. */
import { expect, test } from "vitest"
import { Desk } from "./posthorn.ts"

const PATIENCE = { timeout: 60_000 }

test(
  "a misspelt variable is a warning with the nearest name, and the command goes on",
  PATIENCE,
  async () => {
    const desk = new Desk({ POSTHORN_STOR: "sqlite:elsewhere.db" })
    const warning =
      "posthorn: warning: the variable POSTHORN_STOR is unknown and has no effect; did you mean POSTHORN_STORE?\n"
    const config = await desk.posthorn(["config", "--json"])
    expect({ code: config.code, stderr: config.stderr }).toEqual({ code: 0, stderr: warning })
    expect(JSON.parse(config.stdout).store).toEqual({ value: "sqlite:./data/posthorn.db", source: "default" })
    const created = await desk.posthorn(["apps", "create", "Acme"])
    expect({ code: created.code, stderr: created.stderr }).toEqual({ code: 0, stderr: warning })
  },
)

test("a misspelt variable is a warning for commands that ask a server, too", PATIENCE, async () => {
  const desk = new Desk({ POSTHORN_SERVER: "http://127.0.0.1:9", POSTHORN_API_KY: "ph_x" })
  const { code, stderr } = await desk.posthorn(["lanes"])
  expect(code).not.toBe(0)
  expect(stderr.split("\n")[0]).toBe(
    "posthorn: warning: the variable POSTHORN_API_KY is unknown and has no effect; did you mean POSTHORN_API_KEY?",
  )
})

test("a whole policy in POSTHORN_RETRY is in force, and what is wrong in it is named", PATIENCE, async () => {
  const retry = { max_attempts: 4, backoff_schedule: [1, 5, 30] }
  const desk = new Desk({ POSTHORN_RETRY: JSON.stringify(retry) })
  const { stdout } = await desk.posthorn(["config", "--json"])
  expect(JSON.parse(stdout).retry).toEqual({ value: JSON.stringify(retry), source: "POSTHORN_RETRY" })
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  const made = await desk.posthorn(["endpoints", "create", "acme", "https://example.com/", "--json"])
  expect(JSON.parse(made.stdout).policy).toMatchObject({ delays: [1, 5, 30], maxAttempts: 4 })
  const environment = { POSTHORN_RETRY: '{"max_attempts": 4, "backoff_schedule": []}' }
  expect(await desk.posthorn(["config"], { environment })).toEqual({
    code: 2,
    stdout: "",
    stderr: "posthorn: POSTHORN_RETRY.backoff_schedule must not be an empty list\n",
  })
})
