/** Commands against a real server: what is printed, what is asked, and the exit codes. */
import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { Desk } from "./posthorn.ts"
import { onTerminal } from "./terminal.ts"
import { World } from "./world.ts"

const PATIENCE = { timeout: 120_000 }

test("lists are tables for people and the API's page for programs", PATIENCE, async () => {
  const { desk, server } = await World.start()
  const { stdout, stderr, code } = await desk.posthorn(["endpoints", "list", "acme"])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  const [head, ...rows] = stdout.trimEnd().split("\n")
  expect(head).toMatch(/^ID +UID +URL +TYPES +STATE$/)
  expect(rows.map((row) => row.split(/ {2,}/).filter((_, i) => i !== 0 && i !== 2))).toEqual([
    ["paused", "waits", "paused"],
    ["down", "fails", "on"],
    ["main", "invoice.paid", "on"],
  ])
  const page = await desk.posthorn(["endpoints", "list", "acme", "--json", "--limit", "2"])
  const document = JSON.parse(page.stdout)
  expect(document).toEqual((await server.call("GET", "/app/acme/endpoint?limit=2")).body)
  const next = await desk.posthorn(["endpoints", "list", "acme", "--json", "--iterator", document.iterator])
  expect(JSON.parse(next.stdout)).toMatchObject({ data: [{ uid: "main" }], done: true })
})

test("a list that goes on says so, and --all shows all of it", PATIENCE, async () => {
  const { desk, server } = await World.start()
  await server.posthorn.sendBatch(
    "acme",
    Array.from({ length: 260 }, (_, n) => ({ eventType: "nobody.wants", payload: { n } })),
  )
  const some = await desk.posthorn(["messages", "list", "acme", "--limit", "3"])
  expect(some.stdout.trimEnd().split("\n")).toHaveLength(4)
  expect(some.stderr).toBe("There are more: --all shows everything, --limit N the first N.\n")
  const all = await desk.posthorn(["messages", "list", "acme", "--all"])
  expect(all.stdout.trimEnd().split("\n")).toHaveLength(262)
  expect(all.stderr).toBe("")
  const asJson = await desk.posthorn(["messages", "list", "acme", "--all", "--json"])
  expect(JSON.parse(asJson.stdout)).toMatchObject({ done: true, data: { length: 261 } })
})

test("a delivery is shown with its attempts, a message with its endpoints", PATIENCE, async () => {
  const world = await World.start()
  const id = await world.deadLetter()
  const delivery = await world.desk.posthorn(["deliveries", "get", id])
  expect(delivery.stdout).toMatch(/^status +dead\ndeadReason +exhausted$/m)
  expect(delivery.stdout).toMatch(/^atmpt_\w+ +\S+Z +fail +500 +\d+ +http\S+\/down +answer 500$/m)
  const message = await world.desk.posthorn(["messages", "get", "acme", "invoice-17"])
  expect(message.stdout).toMatch(/^eventId +invoice-17$/m)
  expect(message.stdout).toMatch(/^dlv_\w+ +delivered +– +– +http.*\/main$/m)
})

const MISTAKES: readonly (readonly [args: readonly string[], code: number, sentence: string])[] = [
  [["apps", "get", "nobody"], 1, 'there is no application "nobody"'],
  [["endpoints", "create", "acme", "ftp://x"], 1, "url must"],
  [
    ["endpoints", "create", "acme", "https://example.com/", "--uid", "main"],
    1,
    'has an endpoint with uid "main" already',
  ],
  [["send", "acme", "--type", "no spaces", "--data", "1"], 1, "--type must match pattern"],
  [["send", "acme", "--type", "a", "--data", "{"], 2, "--data is not JSON"],
  [["send", "acme", "--type", "a"], 2, "say once what the content is"],
  [["send", "acme", "--type", "a", "--data", "1", "--file", "x"], 2, "say once what the content is"],
  [["send", "acme", "--type", "a", "--file", "missing.json"], 2, "missing.json cannot be read: ENOENT"],
  [
    ["send", "acme", "--type", "a", "--data", "1", "--delay", "1h", "--deliver-at", "1h"],
    2,
    "give one of them",
  ],
  [["apps", "update", "acme"], 2, "there is nothing to change"],
  [["apps", "list", "--limit", "0"], 1, "limit must be >= 1"],
  [["apps", "list", "--iterator", "no iterator"], 1, "iterator"],
  [["dead", "retry"], 2, "say which: an id"],
  [["dead", "retry", "dlv_1", "--app", "acme"], 2, "one id, or flags"],
  [["dead", "retry", "--all", "--app", "acme", "--yes"], 2, "say which: an id"],
  [["deliveries", "send-now"], 2, "say which: flags such as --app"],
  [["deliveries", "send-now", "--all", "--app", "acme", "--yes"], 2, "say which: flags such as --app"],
  [["deliveries", "reschedule", "dlv_1"], 2, "say when, once"],
  [["operational-webhooks", "get", "ep_1"], 1, 'there is no endpoint "ep_1"'],
  [["keys", "create", "x"], 2, "--scope is missing"],
  [["keys", "create", "x", "--scope", "application"], 1, "--app is required for an application's key"],
  [["policies", "put", "standard", "--data", '{"maxAttempts": 1}'], 1, 'name "standard" is that of a preset'],
  [["policies", "preview", "{"], 2, "the policy is not JSON"],
  [["stats", "--endpoint", "main"], 2, "--app is missing"],
  [["completion", "fissh"], 2, "unknown shell fissh; did you mean fish?"],
  [["apps", "list", "--store", "sqlite:x.db", "--server", "http://x"], 2, "two places to ask"],
]

test("every mistake is one sentence, and the exit code says whose it is", PATIENCE, async () => {
  const { desk } = await World.start()
  for (const [args, code, sentence] of MISTAKES) {
    const result = await desk.posthorn(args)
    const typed = args.join(" ")
    expect(result, typed).toEqual({ code, stdout: "", stderr: expect.stringContaining(sentence) })
    expect(result.stderr, typed).toMatch(/^posthorn: .*\n$/)
  }
})

test("a wrong key, no key, and no server are each said in a sentence", PATIENCE, async () => {
  const { desk, server } = await World.start()
  const wrong = await desk.posthorn(["apps", "list", "--key", "ph_0123456789abcdef_wrong"])
  expect(wrong).toEqual({
    code: 1,
    stdout: "",
    stderr: "posthorn: the server does not take this key: Invalid token; check --key or POSTHORN_API_KEY\n",
  })
  const nobody = new Desk({ POSTHORN_SERVER: server.url })
  expect(await nobody.posthorn(["apps", "list"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "posthorn: the server wants a key: give it with --key or POSTHORN_API_KEY\n",
  })
  expect((await nobody.posthorn(["health"])).code).toBe(0)
  await server.app.close()
  expect(await desk.posthorn(["apps", "list"])).toEqual({
    code: 1,
    stdout: "",
    stderr: `posthorn: the server cannot be reached: ${server.url} refused the connection; does it run, and is --server (POSTHORN_SERVER) its address?\n`,
  })
})

test("without a terminal nothing is deleted unless --yes says so", PATIENCE, async () => {
  const world = await World.start()
  await world.waiting()
  const { endpoints, deliveries } = world.server.posthorn
  await endpoints.update("acme", "down", { retry: { delays: [3600], maxAttempts: 2 } })
  await world.send("fails")
  await expect.poll(() => deliveries.count({ status: "failed" })).toBe(1)
  const refused = await world.desk.posthorn(["apps", "delete", "acme"])
  expect(refused).toMatchObject({ code: 2, stdout: "" })
  expect(refused.stderr).toMatch(
    /^posthorn: this needs --yes where nobody can be asked: Application app_\w+ \(Acme\) would be deleted with 3 endpoints, and 2 waiting deliveries cancelled\.\n$/,
  )
  const done = await world.desk.posthorn(["apps", "delete", "acme", "--yes", "--json"])
  expect(done).toEqual({ code: 0, stdout: "null\n", stderr: "" })
  expect((await world.desk.posthorn(["apps", "get", "acme"])).code).toBe(1)
})

test("an import that would archive says what, and asks first", PATIENCE, async () => {
  const { desk, server } = await World.start()
  desk.write("openapi.yaml", "webhooks: { invoice.overdue: { post: { description: Overdue } } }")
  const run = (...flags: string[]) => desk.posthorn(["event-types", "import", "openapi.yaml", ...flags])
  const names = async () => (await server.posthorn.eventTypes.list()).data.map(({ name }) => name)
  const refused = await run("--replace-all")
  expect(refused).toEqual({
    code: 2,
    stdout: "",
    stderr:
      "posthorn: this needs --yes where nobody can be asked: 1 event type would be created or changed, 1 archived: " +
      "invoice.overdue, invoice.paid (archived)\n",
  })
  expect(await names()).toEqual(["invoice.paid"])
  expect((await run("--replace-all", "--dry-run")).code).toBe(0)
  expect((await run()).code).toBe(0)
  expect(await names()).toEqual(["invoice.overdue", "invoice.paid"])
  expect(await run("--replace-all", "--yes")).toMatchObject({ code: 0, stderr: "" })
  expect(await names()).toEqual(["invoice.overdue"])
})

test("on a terminal it asks: no leaves everything, yes goes on with a bar", PATIENCE, async () => {
  const world = await World.start()
  await world.deadLetter()
  await world.deadLetter()
  const line = onTerminal("posthorn dead discard --app acme --type fails")
  const no = await world.desk.type(line, { input: "n\n" })
  expect(no.code).toBe(1)
  expect(no.stdout).toContain("2 dead letters with app acme, type fails would be taken off the list.")
  expect(no.stdout).toContain("posthorn: nothing was done")
  expect(await world.server.posthorn.dead.count()).toBe(2)

  const yes = await world.desk.type(line, { input: "y\n" })
  expect(yes.code).toBe(0)
  expect(yes.stdout).toMatch(/█ dead\.discard +100 % \(2 of 2 deliveries\)/)
  expect(yes.stdout).toMatch(/dead\.discard is finished: 2 of 2/)
  expect(await world.server.posthorn.dead.count()).toBe(0)
})

test(
  "on a terminal tables have colours and its width; NO_COLOR takes the colours away",
  PATIENCE,
  async () => {
    const world = await World.start()
    await world.deadLetter()
    const line = onTerminal("posthorn deliveries list --status dead", 100)
    // Node has no colours where CI is set, terminal or not.
    const environment = { TERM: "xterm-256color" }
    const coloured = await world.desk.type(`unset CI NO_COLOR; ${line}`, { environment })
    expect(coloured.stdout).toContain("\x1b[31mdead")
    const plain = await world.desk.type(line, { environment: { NO_COLOR: "1" } })
    expect(plain.stdout).not.toContain("\x1b")
    const lines = plain.stdout.trimEnd().split("\r\n")
    expect(lines).toHaveLength(3)
    for (const one of lines) expect([...one].length).toBeLessThanOrEqual(100)
    expect(lines[1]).toMatch(/^dlv_…\w{6} .*…/)
    expect(lines[2]).toBe("Shortened to fit the terminal; --wide shows everything.")
    const wide = await world.desk.type(onTerminal("posthorn deliveries list --wide", 80))
    expect(wide.stdout).toMatch(/^dlv_\w{27} /m)
    expect(wide.stdout).not.toContain("…")
  },
)

test("80 columns show the next attempt, the URL and the error, and endpoints by name", PATIENCE, async () => {
  const world = await World.start()
  const { endpoints, deliveries } = world.server.posthorn
  await endpoints.update("acme", "down", { retry: { delays: [7205], maxAttempts: 2, jitter: "none" } })
  await world.send("fails")
  await expect.poll(() => deliveries.count({ status: "failed" })).toBe(1)
  const show = async (command: string) => {
    const { stdout } = await world.desk.type(onTerminal(command, 80), { environment: { NO_COLOR: "1" } })
    const lines = stdout.trimEnd().split("\r\n")
    for (const line of lines) expect([...line].length).toBeLessThanOrEqual(80)
    return lines
  }
  const [head, delivery] = await show("posthorn deliveries list --status failed")
  expect(head).toMatch(/^ID +STATUS +TRIES +NEXT +URL +ERROR$/)
  expect(delivery).toMatch(
    /^dlv_…\w{6} +failed +1 +in 2h( \d+s)? +http:\/\/127\.0\.0\.1:\S+ +HTTP 500: answer/,
  )
  const [, lane] = await show("posthorn lanes")
  expect(lane).toMatch(/^(app_…\w{6} +)?down +retry +0 +1 +0 .* ago +in 2h/)
  const [, attempt] = await show("posthorn attempts list acme --status fail")
  expect(attempt).toMatch(/^atmpt_…\w{6} +\S+ ago +fail +500 +\d+ +http:\S+ +answer 500$/)
  await world.send("fails", { maxAttempts: 1 })
  await expect.poll(() => deliveries.count({ status: "dead" })).toBe(1)
  const [, group] = await show("posthorn dead groups")
  expect(group).toMatch(/^ +1 +down +exhausted .*HTTP 500: answer/)
})

test("an attempt whose answer broke off shows why beside its status", PATIENCE, async () => {
  const world = await World.start()
  world.receiver.always("/down", (_request, response) => {
    response.writeHead(200, { "content-length": "100" }).flushHeaders()
    response.socket!.end()
  })
  await world.send("fails")
  const list = async () =>
    (await world.desk.posthorn(["attempts", "list", "acme", "--status", "fail", "--wide"])).stdout
  await expect.poll(list, { timeout: 20_000 }).toMatch(/ fail +200 .* connection_reset\n$/)
})

test("recover sends what was given up, and replay-missing what was missed", PATIENCE, async () => {
  const world = await World.start()
  await world.deadLetter()
  world.receiver.always("/down", 200)
  const preview = await world.desk.posthorn(["endpoints", "recover", "acme", "down", "--since", "1h"])
  expect(preview.stderr).toMatch(/: 1 delivery given up since \S+ would be sent again\.\n$/)
  const recovered = await world.desk.posthorn([
    "endpoints",
    "recover",
    "acme",
    "down",
    "--since",
    "1h",
    "--yes",
  ])
  expect(recovered.stdout).toMatch(/^endpoint\.recover is finished: 1 of 1/)
  await world.receiver.arrived("/down", 2)

  await world.send("late")
  const url = world.receiver.url("/late")
  await world.desk.posthorn(["endpoints", "create", "acme", url, "--uid", "late", "--type", "late"])
  const args = ["endpoints", "replay-missing", "acme", "late", "--since", "1h"]
  expect((await world.desk.posthorn(args)).stderr).toContain("Of 3 messages since")
  expect((await world.desk.posthorn([...args, "--yes"])).code).toBe(0)
  await world.receiver.arrived("/late", 1)
})

test("the receiver is back: what waits is counted, asked about, and sent now", PATIENCE, async () => {
  const world = await World.start()
  const { endpoints, deliveries } = world.server.posthorn
  await endpoints.update("acme", "down", { retry: { delays: [3600], maxAttempts: 3 } })
  for (let n = 0; n < 2; n++) await world.send("fails")
  await expect.poll(() => deliveries.count({ status: "failed" })).toBe(2)
  world.receiver.always("/down", 200)
  const args = ["deliveries", "send-now", "--app", "acme", "--endpoint", "down"]
  expect(await world.desk.posthorn(args)).toEqual({
    code: 2,
    stdout: "",
    stderr:
      "posthorn: this needs --yes where nobody can be asked: 2 waiting deliveries with app acme, endpoint down would be sent now.\n",
  })
  expect(await world.desk.posthorn([...args, "--yes"])).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /^delivery\.send-now is finished: 2 deliveries are due now, 2 of them ahead of their time \(qtask_\w+\)\n$/,
    ),
    stderr: "",
  })
  await world.receiver.arrived("/down", 4)
})

test.each([
  ["dead retry --app acme", "There are no such dead letters.\n"],
  ["dead discard --all", "There are no such dead letters.\n"],
  ["endpoints recover acme down --since 2h", "There is nothing to send again.\n"],
  ["endpoints replay-missing acme down --since 2h --until 1h", "There is nothing to send again.\n"],
])("posthorn %s asks nothing where nothing fits", PATIENCE, async (line, stdout) => {
  const world = await World.start()
  expect(await world.desk.posthorn(line.split(" "))).toEqual({ code: 0, stdout, stderr: "" })
})

test("send-now says that nothing waits, and asks nothing", PATIENCE, async () => {
  const world = await World.start()
  await world.waiting()
  const args = ["deliveries", "send-now", "--app", "acme"]
  const stdout =
    "Nothing waits that could be sent now. Paused and disabled endpoints keep their deliveries.\n"
  for (const more of [[], ["--yes"]])
    expect(await world.desk.posthorn([...args, ...more])).toEqual({ code: 0, stdout, stderr: "" })
})

test("a delivery is rescheduled, and a message is sent again", PATIENCE, async () => {
  const world = await World.start()
  const id = await world.waiting()
  const paused = await world.desk.posthorn(["deliveries", "reschedule", id, "--in", "15m", "--json"])
  expect(JSON.parse(paused.stdout)).toMatchObject({ nextAttempt: null, waitReason: "paused" })
  await world.server.posthorn.endpoints.resume("acme", "paused")
  const soon = await world.desk.posthorn(["deliveries", "get", id, "--json"])
  const inMs = Date.parse(JSON.parse(soon.stdout).nextAttempt) - Date.now()
  expect(inMs).toBeGreaterThan(800_000)
  expect(inMs).toBeLessThanOrEqual(900_000)
  const at = "2100-01-01T00:00:00Z"
  const later = await world.desk.posthorn(["deliveries", "reschedule", id, "--at", at])
  expect(later.stdout).toMatch(/^nextAttempt +2100-01-01T00:00:00Z$/m)
  const again = await world.desk.posthorn(["messages", "resend", "acme", "invoice-17", "main"])
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("is sent to main again") })
  await world.receiver.arrived("/main", 2)
})

test("an application's recent failures are listed without naming an endpoint", PATIENCE, async () => {
  const world = await World.start()
  await world.deadLetter()
  const { stdout } = await world.desk.posthorn(["attempts", "list", "acme", "--status", "fail"])
  expect(stdout.trimEnd().split("\n")).toHaveLength(2)
  expect(stdout).toMatch(/ fail +500 .*\/down +answer 500$/m)
})

test("workers shows who delivers", PATIENCE, async () => {
  const { desk } = await World.start()
  const { stdout, code } = await desk.posthorn(["workers"])
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /^ID +NAME +ALIVE +LEASE UNTIL +LANES +IN HAND\n\w+ +process \d+ on \S+ +yes +– +\d+ +0\n$/,
  )
})

test("operational webhooks are created, changed, rotated and deleted", PATIENCE, async () => {
  const { desk, receiver } = await World.start()
  const run = (...args: string[]) => desk.posthorn(["operational-webhooks", ...args])
  const type = ["--type", "endpoint.disabled"]
  const made = await run("create", receiver.url("/second"), "--uid", "second", ...type, "--json")
  expect(JSON.parse(made.stdout)).toMatchObject({ uid: "second", eventTypes: ["endpoint.disabled"] })
  const list = await run("list")
  expect(
    list.stdout
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/ {2,}/)[1]),
  ).toEqual(["second", "ops"])
  const changed = await run("update", "second", "--type=", "--description", "Ops", "--json")
  expect(JSON.parse(changed.stdout)).toMatchObject({
    uid: "second",
    url: receiver.url("/second"),
    eventTypes: null,
    description: "Ops",
  })
  const { stdout: secret } = await run("secret", "second")
  const { stdout: rotated } = await run("rotate", "second")
  expect([secret, rotated]).toEqual([expect.stringMatching(/^whsec_/), expect.stringMatching(/^whsec_/)])
  expect(rotated).not.toBe(secret)
  expect((await run("delete", "second")).stderr).toContain("(http")
  expect((await run("delete", "second", "--yes")).code).toBe(0)
  expect((await run("get", "second")).code).toBe(1)
})

test("an endpoint is changed field by field, also to nothing", PATIENCE, async () => {
  const { desk, server } = await World.start()
  const update = (...flags: string[]) => desk.posthorn(["endpoints", "update", "acme", "main", ...flags])
  const set = [
    "--description",
    "Billing",
    "--channel",
    "a",
    "--channel",
    "b",
    "--rate-limit",
    "7",
    "--ordered",
  ]
  expect((await update(...set, "--header", "X-Team: billing", "--metadata", "plan=gold")).code).toBe(0)
  expect((await server.call("GET", "/app/acme/endpoint/main")).body).toMatchObject({
    description: "Billing",
    channels: ["a", "b"],
    throttleRate: 7,
    ordered: true,
    metadata: { plan: "gold" },
    eventTypes: ["invoice.paid"],
  })
  const headers = () => server.call("GET", "/app/acme/endpoint/main/headers")
  expect((await headers()).body.headers).toEqual({ "X-Team": "billing" })
  desk.write("more.json", '{"auth": {"type": "bearer", "token": "t"}, "concurrency": 3}')
  const clear = ["--channel=", "--rate-limit=", "--type=", "--unordered", "--disable", "--from", "more.json"]
  expect((await update(...clear, "--remove-header", "X-Team")).code).toBe(0)
  expect((await server.call("GET", "/app/acme/endpoint/main")).body).toMatchObject({
    channels: null,
    throttleRate: null,
    eventTypes: null,
    ordered: false,
    disabled: true,
    concurrency: 3,
  })
  expect((await headers()).body.headers).toEqual({})
})

test("a command that asks a server loads nothing of the engine, and no other command", PATIENCE, async () => {
  const { desk } = await World.start()
  desk.write(
    "spy.mjs",
    `import { registerHooks } from "node:module"
     import { appendFileSync } from "node:fs"
     registerHooks({ load(url, context, next) { appendFileSync("loaded.txt", url + "\\n"); return next(url, context) } })`,
  )
  // From its sources: a bundle has other files.
  const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url))
  const { code } = await desk.type(
    `env -u POSTHORN_METRICS '${process.execPath}' --import ./spy.mjs '${main}' apps list`,
  )
  expect(code).toBe(0)
  const loaded = readFileSync(join(desk.folder, "loaded.txt"), "utf8").trim().split("\n")
  expect(loaded.filter((url) => /\/(api|engine|store|config|node_modules)\//.test(url))).toEqual([])
  expect(
    loaded
      .filter((url) => url.includes("/cli/commands/"))
      .map((url) => basename(url))
      .sort(),
  ).toEqual(["apps.ts", "shared.ts"])
})

test(
  "a disabled endpoint comes back: counts are shown, asked about, and the choice is made",
  PATIENCE,
  async () => {
    const world = await World.start()
    const { endpoints } = world.server.posthorn
    const args = ["endpoints", "enable", "acme", "paused"]
    for (const more of [[], ["--yes"]])
      expect(await world.desk.posthorn([...args, ...more])).toEqual({
        code: 1,
        stdout: "",
        stderr: 'posthorn: endpoint "paused" is not disabled\n',
      })
    // A message of the millisecond of the disabling counts as missed.
    const nextMillisecond = async (from = Date.now()) =>
      expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(from)
    await world.waiting()
    await nextMillisecond()
    await endpoints.update("acme", "paused", { disabled: true })
    await endpoints.resume("acme", "paused")
    await nextMillisecond()
    await world.send("waits")
    const asked = await world.desk.posthorn([...args, "--discard", "--replay"])
    expect(asked).toMatchObject({ code: 2, stdout: "" })
    expect(asked.stderr).toMatch(
      /--yes where nobody can be asked: The endpoint is disabled since .+ \(manual\)\. 1 waiting delivery would be cancelled, and 1 message sent while it was disabled would be sent too\.\n$/,
    )
    expect(await world.desk.posthorn([...args, "--discard", "--replay", "--yes"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^endpoint\.enable is finished: 1 of 1 \(qtask_\w+\)\nendpoint\.replay is finished: 1 of \d+ \(qtask_\w+\)\n$/,
      ),
      stderr: "",
    })
    await world.receiver.arrived("/paused", 1)
    await endpoints.update("acme", "paused", { disabled: true })
    expect(await world.desk.posthorn([...args, "--yes"])).toEqual({
      code: 0,
      stdout: "Endpoint paused is enabled.\n",
      stderr: "",
    })
    await endpoints.update("acme", "paused", { disabled: true })
    const asJson = await world.desk.posthorn([...args, "--discard", "--replay", "--yes", "--json"])
    const { discardTaskId, replayTaskId, ...document } = JSON.parse(asJson.stdout)
    expect(document).toMatchObject({
      held: 0,
      endpoint: { uid: "paused", disabled: false },
      tasks: [
        { id: discardTaskId, task: "endpoint.enable", status: "finished" },
        { id: replayTaskId, task: "endpoint.replay", status: "finished" },
      ],
    })
  },
)

test("a key of an application starts tasks, and is told that it cannot watch them", PATIENCE, async () => {
  const world = await World.start()
  const { applications, endpoints, keys } = world.server.posthorn
  const { id: appId } = await applications.get("acme")
  const { token } = await keys.create({ name: "acme", scope: "application", appId })
  const environment = { POSTHORN_API_KEY: token }
  await endpoints.update("acme", "main", { disabled: true })
  const args = ["endpoints", "enable", "acme", "main", "--discard", "--yes"]
  const { code, stdout, stderr } = await world.desk.posthorn(args, { environment })
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^Endpoint main is enabled when its waiting deliveries are discarded\.\nqtask_\w+\n$/,
    ),
  ])
  expect(stderr).toMatch(/^Task qtask_\w+ is started\. Its progress is not shown: only a key of the whole/)
  await expect.poll(() => endpoints.get("acme", "main"), PATIENCE).toMatchObject({ disabled: false })
  const recover = ["endpoints", "recover", "acme", "down", "--since", "1d", "--yes"]
  expect(await world.desk.posthorn(recover, { environment })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^qtask_\w+\n$/),
  })
  const watch = await world.desk.posthorn(["tasks", "watch", stdout.trim().split("\n")[1]!], { environment })
  expect(watch).toMatchObject({ code: 1, stderr: expect.stringContaining("a key of the whole organization") })
})

test(
  "an endpoint shows the fields of its policy that were set, its breaker and its times",
  PATIENCE,
  async () => {
    const world = await World.start()
    const { endpoints } = world.server.posthorn
    const retry = {
      delays: [60],
      maxAttempts: 5,
      timeout: 20,
      budget: false,
      breaker: { open: 10 },
      retention: { delivered: { after: 3600 } },
    } as const
    await endpoints.update("acme", "main", { retry })
    const show = async () => (await world.desk.posthorn(["endpoints", "get", "acme", "main"])).stdout
    const text = await show()
    const [, policy] = /^policy +(.*)$/m.exec(text)!
    expect(JSON.parse(policy!)).toEqual({
      delays: [60],
      maxAttempts: 5,
      timeout: 20,
      budget: false,
      breaker: { open: 10 },
      retention: { delivered: { after: 3600, from: "delivered_at" } },
    })
    expect(text).toMatch(/^breaker +closed$/m)
    await endpoints.trip("acme", "main")
    await endpoints.update("acme", "main", { disabled: true })
    await endpoints.pause("acme", "main")
    const now = await show()
    expect(now).toMatch(/^breaker +open until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m)
    expect(now).toMatch(/^disabledAt +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m)
    expect(now).toMatch(/^pausedAt +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m)
  },
)

test("80 columns show how long a breaker is open, the URL, and the last error first", PATIENCE, async () => {
  const world = await World.start()
  const { endpoints } = world.server.posthorn
  const url = `https://example.com/${"hooks".repeat(8)}`
  await endpoints.create("acme", { uid: "open", url, eventTypes: ["none"] })
  await endpoints.trip("acme", "open")
  await world.deadLetter()
  const { stdout } = await world.desk.type(onTerminal("posthorn endpoints list acme", 80))
  expect(stdout).toMatch(/ open +https:\/\/example\.com\/ho\S* +none +breaker open, ends in \d+s\r?$/m)
  const health = await world.desk.type(onTerminal("posthorn endpoints list acme --health", 80))
  expect(health.stdout).toMatch(/^down +degraded .* last error: HTTP 500\r?$/m)
})
