/** Commands on a store of this machine: no server, no key, beside whoever delivers. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { openPosthorn, type Posthorn } from "../../src/index.ts"
import { TENANT_WEBHOOK_APP } from "../../src/tenant-webhooks/tenant-webhooks.ts"
import { postgresGround } from "../support/ground.ts"
import { LOOPBACK } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { freshDatabase } from "../support/servers/postgres.ts"
import { Desk } from "./posthorn.ts"

const PATIENCE = { timeout: 120_000 }

const DATABASE = join("data", "posthorn.db")
const OPEN = { POSTHORN_EGRESS_ALLOW: "127.0.0.0/8", POSTHORN_EGRESS_PORTS: "any" }

/** Another process that has the desk's file open. */
async function beside(desk: Desk, deliver: boolean): Promise<Posthorn> {
  const store = `sqlite:${join(desk.folder, DATABASE)}`
  const posthorn = await openPosthorn({
    store,
    deliver,
    egress: LOOPBACK,
    logger: "silent",
    pollIntervalMs: 10,
    closeTimeoutMs: 0,
  })
  onTestFinished(() => posthorn.close())
  return posthorn
}

test("a look at a store that is not there says so, and leaves nothing behind", PATIENCE, async () => {
  const desk = new Desk()
  const commands = [
    ["apps", "list"],
    ["dead", "retry", "--all", "--yes"],
    ["send", "a", "--type", "a", "--data", "1"],
  ]
  for (const args of commands) {
    expect(await desk.posthorn(args)).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "posthorn: there is no store at ./data/posthorn.db: start posthorn serve, or name another with --store or a server with --server\n",
    })
  }
  const named = await desk.posthorn(["stats"], { environment: { POSTHORN_STORE: "sqlite:elsewhere.db" } })
  expect(named.stderr).toContain("there is no store at elsewhere.db (POSTHORN_STORE)")
  expect(existsSync(join(desk.folder, "data"))).toBe(false)
})

test("a command line that is wrong makes no store either", PATIENCE, async () => {
  const desk = new Desk()
  const commands = [
    ["keys", "create", "x"],
    ["send", "acme", "--create-app", "--data", "{}"],
    ["policies", "put", "x", "--data", "{"],
  ]
  for (const args of commands) expect((await desk.posthorn(args)).code).toBe(2)
  expect(existsSync(join(desk.folder, "data"))).toBe(false)
})

test("policies can be previewed where there is no store, and none is made", PATIENCE, async () => {
  const desk = new Desk()
  const { code, stdout } = await desk.posthorn(["policies", "preview", "gateway"])
  expect(code).toBe(0)
  expect(stdout.split("\n").map((line) => line.trim().split(/ {2,}/, 2))).toEqual([
    ["ATTEMPT", "AFTER"],
    ["1", "0s"],
    ["2", "30s"],
    ["3", "2m 30s"],
    ["4", "12m 30s"],
    ["5", "1h 12m"],
    ["breaker", "off: an endpoint that is down gets every request of the schedule"],
    ["budget", "off: retries are limited by the schedule alone"],
    ["adaptive", "off: the schedule alone sets the delays"],
    ["autoDisable", "off: without a success, warned after 24 h and 72 h, and never disabled"],
    [""],
  ])
  const json = await desk.posthorn(["policies", "preview", "standard", "--json"])
  expect(JSON.parse(json.stdout)).toMatchObject({
    protection: { breaker: { settings: { failures: 5 }, text: expect.stringMatching(/^opens after 5/) } },
  })
  expect(existsSync(join(desk.folder, "data"))).toBe(false)
})

test(
  "a message that is sent beside a process that delivers is delivered by that process, byte for byte",
  PATIENCE,
  async () => {
    const desk = new Desk(OPEN)
    const receiver = await Receiver.start()
    onTestFinished(() => receiver.close())
    expect((await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])).code).toBe(0)
    const url = receiver.url("/hook")
    const made = await desk.posthorn(["endpoints", "create", "acme", url, "--uid", "main", "--json"])
    expect(JSON.parse(made.stdout)).toMatchObject({ url, uid: "main" })
    await beside(desk, true)

    const content = '{ "big": 12345678901234567890 }\n'
    const sent = await desk.posthorn(["send", "acme", "-", "--type", "a", "--json"], { input: content })
    expect({ code: sent.code, stderr: sent.stderr }).toEqual({ code: 0, stderr: "" })
    const [arrived] = await receiver.arrived("/hook", 1)
    expect(arrived!.body.toString()).toBe(content)
    expect(arrived!.id).toBe(JSON.parse(sent.stdout).id)
    expect(arrived!.headers["content-type"]).toBe("application/json")
  },
)

test(
  "--create-app makes the store and the application; the same idempotency key sends once",
  PATIENCE,
  async () => {
    const desk = new Desk()
    const args = [
      "send",
      "acme",
      "--create-app",
      "--type",
      "a",
      "--data",
      "{}",
      "--idempotency-key",
      "k",
      "--json",
    ]
    const first = await desk.posthorn(args)
    expect(first).toMatchObject({ code: 0, stderr: "" })
    const again = await desk.posthorn(args)
    expect(JSON.parse(again.stdout).id).toBe(JSON.parse(first.stdout).id)
    const { stdout } = await desk.posthorn(["messages", "list", "acme", "--json"])
    expect(JSON.parse(stdout).data).toHaveLength(1)
  },
)

test("dead letters are sent again by filter also when nobody delivers", PATIENCE, async () => {
  const desk = new Desk(OPEN)
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  const posthorn = await beside(desk, false)
  await posthorn.endpoints.create("acme", { uid: "main", url: "http://127.0.0.1:1/" })
  for (let n = 0; n < 3; n++) await posthorn.send("acme", { eventType: "a", payload: { n } })
  for (const { id } of (await posthorn.deliveries.list()).data) await posthorn.deliveries.cancel(id)

  expect(await desk.posthorn(["dead", "count", "--reason", "cancelled"])).toMatchObject({ stdout: "3\n" })
  const retried = await desk.posthorn(["dead", "retry", "--app", "acme", "--reason", "cancelled", "--yes"])
  expect(retried).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^dead.retry is finished: 3 of 3 \(qtask_\w{27}\)\n$/),
    stderr: "",
  })
  expect(await posthorn.stats()).toMatchObject({ pending: 3, dead: 0 })
})

test("--no-wait says the task's id and leaves it to whoever delivers", PATIENCE, async () => {
  const desk = new Desk()
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  const started = await desk.posthorn(["dead", "discard", "--all", "--yes", "--no-wait"])
  expect(started).toMatchObject({ code: 0, stdout: expect.stringMatching(/^qtask_\w{27}\n$/) })
  const posthorn = await beside(desk, false)
  expect(await posthorn.tasks.get(started.stdout.trim())).toMatchObject({ status: "running" })
  expect((await desk.posthorn(["tasks", "watch", started.stdout.trim()])).code).toBe(0)
  expect(await posthorn.tasks.get(started.stdout.trim())).toMatchObject({ status: "finished" })
})

test("the file names the store, and --store goes before a server in the environment", PATIENCE, async () => {
  const desk = new Desk()
  desk.write("posthorn.json", '{"store": "sqlite:mine.db"}')
  expect((await desk.posthorn(["apps", "create", "Acme"])).code).toBe(0)
  expect(existsSync(join(desk.folder, "mine.db"))).toBe(true)
  const environment = { POSTHORN_SERVER: "http://127.0.0.1:1" }
  const { code, stdout } = await desk.posthorn(["apps", "list", "--store", "sqlite:mine.db"], {
    environment,
  })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("Acme") })
})

test("a store on PostgreSQL is asked in the same way", PATIENCE, async () => {
  const url = await freshDatabase()
  const desk = new Desk({ POSTHORN_STORE: url })
  const empty = await desk.posthorn(["apps", "list"])
  expect(empty).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("there is no store at postgres://"),
  })
  const ground = postgresGround({ store: url })
  onTestFinished(() => ground.close())
  expect(await ground.hasTables()).toBe(false)
  expect((await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])).code).toBe(0)
  const { stdout } = await desk.posthorn(["apps", "get", "acme", "--json"])
  expect(JSON.parse(stdout)).toMatchObject({ uid: "acme", name: "Acme" })
  const elsewhere = { POSTHORN_STORE: url, POSTHORN_SCHEMA: "red" }
  expect((await new Desk(elsewhere).posthorn(["apps", "list"])).stderr).toContain("there is no store at")
  const preview = ["policies", "preview", "gateway"]
  expect(await new Desk(elsewhere).posthorn(preview)).toMatchObject({ code: 0, stderr: "" })
})

test("a change from here is announced as one by a server is", PATIENCE, async () => {
  const desk = new Desk()
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"])
  const { tenantWebhooks } = await beside(desk, false)
  const { messages } = await tenantWebhooks.open(DEFAULT_ORG)
  const made = await desk.posthorn(["endpoints", "create", "acme", "https://example.com/"])
  expect(made.code).toBe(0)
  const { data } = await messages.list(TENANT_WEBHOOK_APP)
  expect(data).toMatchObject([{ eventType: "endpoint.created" }])
})

test("a key that is made on the store opens a server on it", PATIENCE, async () => {
  const desk = new Desk()
  const { stdout } = await desk.posthorn(["keys", "create", "way in", "--scope", "admin"])
  expect(stdout).toMatch(/^ph_\w{16}_\w{32,}\n$/)
  const { keys } = await beside(desk, false)
  expect((await keys.list()).data).toMatchObject([{ name: "way in", scope: "admin" }])
})
