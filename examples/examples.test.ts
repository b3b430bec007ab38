/** Runs each example as a user does, in a process of its own. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { addressOf, serve } from "../test/api/support/serving.ts"
import { Program } from "../test/support/process.ts"

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

test("source.ts: a forged webhook is refused, and a sender that goes away does not end the program", {
  timeout: PATIENCE_MS,
}, async () => {
  expect(await run("source.ts")).toEqual([
    "POST /deploy: accepted",
    "answered with 202",
    "POST /deploy: refused_signature",
    "answered with 401",
    "not received: aborted",
    "messages: push",
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

test("hub.ts: a webhook reaches a hub behind a firewall, which says what became of it", {
  timeout: PATIENCE_MS,
}, async () => {
  const key = "a-key-of-the-operators-own"
  const address = await addressOf(serve([], { POSTHORN_API_KEY: key, POSTHORN_METRICS: "off" }))
  const post = async (path: string, body: object): Promise<{ [field: string]: string }> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const url = `${address}/api/v1${path}`
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    expect(response.status).toBe(201)
    return (await response.json()) as { [field: string]: string }
  }
  await post("/app", { name: "Home", uid: "home" })
  const source = await post("/app/home/source", { name: "doorbell", verification: { scheme: "none" } })
  await post("/app/home/endpoint", { url: "relay://hub", ordered: true })
  const { token } = await post("/key", { name: "hub", scope: "agent", appId: "home" })
  const under = ["env", `POSTHORN_SERVER=${address}`, `HUB_KEY=${token}`]
  const hub = Program.start(new URL("hub.ts", import.meta.url), [], { under })
  onTestFinished(async () => void (await hub.kill()))
  await hub.line(/^connected/)
  const ring = async (body: string) => {
    const path = `${new URL(source.url!).pathname}/front?at=noon`
    return (await fetch(address + path, { method: "PUT", body })).status
  }
  expect([await ring('{"door":"front"}'), await ring("{}")]).toEqual([202, 202])
  await hub.line(/^settled: dead/)
  hub.process.kill("SIGTERM")
  expect(await hub.ended).toMatchObject({ code: 0 })
  expect(hub.lines).toEqual([
    "connected",
    "inbound.doorbell: PUT /front",
    "opening the front door",
    "settled: delivered",
    "inbound.doorbell: PUT /front",
    "settled: dead",
  ])
})
