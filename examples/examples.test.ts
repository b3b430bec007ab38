/** Runs each example as a user does, in a process of its own. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, test } from "vitest"

const PATIENCE_MS = 120_000

/** Rejects if the exit code is not 0. `warnings`: the messages of the log lines. */
async function run(example: string, warnings: readonly string[] = []): Promise<string[]> {
  const file = new URL(example, import.meta.url).pathname
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file])
  const logged = stderr.split("\n").filter((line) => line !== "")
  expect(logged.map((line) => JSON.parse(line).msg)).toEqual(warnings)
  return stdout.trimEnd().split("\n")
}

test("send.ts: a send is accepted once, retried and delivered", { timeout: PATIENCE_MS }, async () => {
  const lines = await run("send.ts")
  expect(lines).toContain("accepted for 1 endpoint")
  expect(lines).toContain("sent twice, accepted once: true")
  expect(lines.filter((line) => line.startsWith("attempt"))).toEqual([
    "attempt 1: HTTP 503",
    "attempt 2: HTTP 200",
  ])
  expect(lines.at(-1)).toBe("delivered 1, waiting 0, dead 0")
})

test("receive.ts: a forged request is refused and a repeated one is not processed twice", {
  timeout: PATIENCE_MS,
}, async () => {
  expect(await run("receive.ts")).toEqual([
    "refused: no signature fits the body",
    "the forger got HTTP 401",
    "taken: INV-2041",
    "known already, not taken again",
    "delivered; events taken: 1",
  ])
})

test("ordered.ts: nothing overtakes a message that fails", { timeout: PATIENCE_MS }, async () => {
  const warnings = ["An endpoint is failing", "An endpoint works again"]
  expect(await run("ordered.ts", warnings)).toEqual([
    "created  HTTP 200",
    "sent     HTTP 500",
    "sent     HTTP 500",
    "sent     HTTP 200",
    "paid     HTTP 200",
    "archived HTTP 200",
    "the ledger took: created, sent, paid, archived",
  ])
})

test("svix-sdk.ts: the official client works with only its server changed", {
  timeout: PATIENCE_MS,
}, async () => {
  expect(await run("svix-sdk.ts")).toEqual([
    "application acme, endpoint for invoice.paid",
    "verified: INV-2041",
    "attempts: success",
    'HTTP 404: Entity not found: there is no application "nobody"',
  ])
})
