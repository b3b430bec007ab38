/** `posthorn listen` as it is typed, without a terminal: lines, the real relay behind them, and nothing left at the end. */
import { createHmac } from "node:crypto"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { connectAgent } from "../../src/agent/agent.ts"
import { Api } from "../../src/cli/api.ts"
import { HttpClient } from "../../src/cli/http-client.ts"
import { LIFE_MS } from "../../src/cli/listen/setup.ts"
import { deleteStale } from "../../src/cli/listen/stale.ts"
import { addressOf, serve } from "../api/support/serving.ts"
import { Authority } from "../egress/certificates.ts"
import { temporaryFolder } from "../support/harness.ts"
import { Receiver } from "../support/receiver.ts"
import { freePort } from "../support/servers/port.ts"
import { interrupted, ListenWorld, urlOf } from "./listening.ts"
import { Desk } from "./posthorn.ts"

const PATIENCE = { timeout: 120_000 }
const KEY = "a-key-from-the-operators-vault"
const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"

const post = (
  url: string,
  body: string | Uint8Array<ArrayBuffer> = "{}",
  headers: Record<string, string> = {},
) => fetch(url, { method: "POST", body, headers })

/** A server, in a process of its own, and a local program. */
async function realServer() {
  const folder = temporaryFolder()
  const variables = { PORT: `${await freePort()}`, POSTHORN_API_KEY: KEY }
  const start = () => serve([], variables, folder)
  const program = start()
  const server = await addressOf(program)
  const local = await Receiver.start()
  onTestFinished(() => local.close())
  const desk = new Desk({
    POSTHORN_SERVER: server.replace(/\[::\]|0\.0\.0\.0/, "127.0.0.1"),
    POSTHORN_API_KEY: KEY,
  })
  const listen = desk.start(["listen", "--forward", local.url("/hooks")])
  await listen.said("Connected; Ctrl-C ends it.")
  return { start, program, local, desk, listen, url: urlOf(listen.lines) }
}

test(
  "a webhook comes to the local program as it was sent, is a line, and nothing is left at the end",
  PATIENCE,
  async () => {
    const { local, desk, listen, url } = await realServer()
    const body = Buffer.from([0, 1, 254, 255])
    let method: string | undefined
    local.queue("/hooks/a%2fb?x=1&x=2", (_received, response) => {
      method = response.req.method
      response.writeHead(201).end("thanks")
    })
    const taken = await fetch(`${url}/a%2fb?x=1&x=2`, { method: "PUT", body, headers: { "X-Case": "Kept" } })
    expect(taken.status).toBe(202)
    await listen.wrote(/HTTP 201/)
    const [received] = local.to("/hooks/a%2fb?x=1&x=2")
    expect(method).toBe("PUT")
    expect(received!.body).toEqual(body)
    expect(received!.headers).toMatchObject({ "x-case": "Kept", "content-length": "4" })
    expect(listen.lines).toEqual([
      url,
      expect.stringMatching(new RegExp(`^${TIME}  inbound  PUT /a%2fb  HTTP 201 in \\d+ ms  attempt 1$`)),
    ])
    const { code, stderr } = await interrupted(listen)
    expect([code, stderr]).toEqual([
      0,
      `Webhooks to this URL, and to paths below it, go to ${local.url("/hooks")}.
Only this machine reaches it: a provider needs a server with a public address.
Connected; Ctrl-C ends it.
`,
    ])
    expect((await post(url)).status).toBe(404)
    const read = async (what: string) =>
      JSON.parse((await desk.posthorn([what, "list", "--json"])).stdout).data
    expect([await read("apps"), await read("agents")]).toEqual([[], []])
    expect(await read("keys")).toContainEqual(
      expect.objectContaining({ scope: "agent", revokedAt: expect.any(String) }),
    )
  },
)

test(
  "a server that stops and comes back is waited for, and what was sent meanwhile comes",
  PATIENCE,
  async () => {
    const { start, program, listen, url, local } = await realServer()
    local.always("/hooks/late", 500)
    await post(`${url}/late`)
    await listen.wrote(/HTTP 500 .*; the webhook is tried again {2}attempt 1$/)
    program.process.kill("SIGTERM")
    await program.ended
    await listen.said("Not connected: ")
    local.always("/hooks/late", 200)
    await addressOf(start())
    await listen.said("Connected again.")
    await listen.wrote(/POST \/late {2}HTTP 200/)
    expect((await interrupted(listen)).code).toBe(0)
  },
)

test(
  "a server that is gone at the end is said with the commands that delete the rest",
  PATIENCE,
  async () => {
    const { program, listen, desk, start } = await realServer()
    await program.kill()
    await listen.said("Not connected: ")
    const { code, stderr } = await interrupted(listen)
    expect(code).toBe(1)
    const [, why, ...commands] =
      /could be deleted \((.*)\); this deletes the rest:\n {2}(.*)\n {2}(.*)\n$/.exec(stderr) ?? []
    expect(why).toContain("refused the connection")
    await addressOf(start())
    for (const command of commands) expect(await desk.type(command)).toMatchObject({ code: 0 })
    expect((await desk.posthorn(["apps", "list"])).stderr).toBe("There are no applications.\n")
  },
)

test(
  "--print shows each request once, and a local program that is down is a clear line",
  PATIENCE,
  async () => {
    const world = await ListenWorld.start()
    const { listen, url } = await world.listenTo("http://127.0.0.1:1", "--print")
    await post(`${url}/push?team=core`, '{"evil": "\x1b[2J"}', { "X-GitHub-Event": "push" })
    await listen.wrote(/attempt 2$/)
    expect(listen.lines.filter((line) => line === "POST /push?team=core")).toHaveLength(1)
    expect(listen.lines).toContain("X-GitHub-Event: push")
    expect(listen.lines).toContain('{"evil": "\\x1b[2J"}')
    expect(listen.lines.at(-1)).toMatch(
      /POST \/push {2}http:\/\/127\.0\.0\.1:1 refused the connection; the webhook is tried again {2}attempt 2$/,
    )
    const { stdout } = await interrupted(listen)
    expect(stdout).not.toContain("\x1b")
  },
)

test("--json is a line for the URL, and one with the request for each webhook", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const listen = world.desk.start(["listen", "--forward", world.forward, "--json", "--print"])
  await listen.wrote(/"url"/)
  const { url } = JSON.parse(listen.lines[0]!)
  expect(JSON.parse(listen.lines[0]!)).toEqual({
    url: expect.stringContaining("/in/"),
    forward: `${world.forward}/`,
    app_id: expect.stringMatching(/^app_/),
    source_id: expect.stringMatching(/^src_/),
    endpoint_id: expect.stringMatching(/^ep_/),
  })
  await post(`${url}?a=1`, Buffer.from([255]))
  await listen.wrote(/"status"/)
  expect(JSON.parse(listen.lines[1]!)).toMatchObject({
    ...{
      method: "POST",
      path: "",
      query: "?a=1",
      event_type: "inbound",
      attempt: 1,
      status: 200,
      base64: "/w==",
    },
    headers: expect.arrayContaining([["content-length", "1"]]),
  })
  expect((await interrupted(listen)).stderr).toBe("")
})

test("--verify takes only what the provider signed, --only forwards only its types", PATIENCE, async () => {
  const world = await ListenWorld.start()
  world.desk.write("secret.txt", "hunter2\n")
  const { listen, url } = await world.listen(
    "--verify",
    "github",
    "--secret-file",
    "secret.txt",
    "--only",
    "push",
  )
  const signed = (type: string, body: string) =>
    post(`${url}/${type}`, body, {
      "X-GitHub-Event": type,
      "X-GitHub-Delivery": "the same each time",
      "X-Hub-Signature-256": `sha256=${createHmac("sha256", "hunter2").update(body).digest("hex")}`,
    })
  expect((await post(url, "{}")).status).toBe(401)
  expect((await signed("ping", "{}")).status).toBe(202)
  for (let times = 0; times < 2; times++) expect((await signed("push", "{}")).status).toBe(202)
  await world.local.arrived("/push", 2)
  await listen.wrote(/push {2}POST \/push {2}HTTP 200/)
  expect((await interrupted(listen)).code).toBe(0)
  expect(world.local.to("/ping")).toEqual([])
})

test(
  "--app listens beside what the application has, and takes only its own things away",
  PATIENCE,
  async () => {
    const world = await ListenWorld.start()
    const { applications, endpoints, posthorn } = {
      ...world.server,
      ...world.server.posthorn,
      posthorn: world.server.posthorn,
    }
    await applications.create({ uid: "acme", name: "Acme" })
    const own = await endpoints.create("acme", { uid: "all", url: world.local.url("/all") })
    const { listen, url } = await world.listen("--app", "acme")
    await listen.said("It also goes to 1 other endpoint of the application.")
    await posthorn.send("acme", { eventType: "invoice.paid", payload: 1 })
    await post(`${url}/own`)
    await world.local.arrived("/all", 2)
    await world.local.arrived("/own", 1)
    await listen.wrote(/inbound\.listen-[0-9a-f]{12} {2}POST \/own {2}HTTP 200/)
    listen.terminate()
    expect((await listen.ended).code).toBe(0)
    expect(listen.lines).toHaveLength(2)
    expect(await world.left()).toMatchObject([{ id: own.id }])
  },
)

test("what a killed run left is deleted by a run that begins a day later", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const { applications, agents } = world.server.posthorn
  await applications.create({ uid: "acme", name: "Acme" })
  for (const more of [[], ["--app", "acme"]]) await (await world.listen(...more)).listen.kill()
  await expect
    .poll(async () => (await agents.list()).data.map(({ connected }) => connected))
    .toEqual([false, false])
  const { listen: tooEarly } = await world.listen()
  await interrupted(tooEarly)
  const names = (await agents.list()).data.map(({ name }) => name)
  expect(await world.left()).toHaveLength(7)
  const api = new Api(new HttpClient(world.server.url, world.server.key))
  const tomorrow = Date.now() + LIFE_MS + 60_000
  expect((await deleteStale(api, undefined, tomorrow)).sort()).toEqual(names.sort())
  // Their keys have expired by then.
  expect(await world.left()).toMatchObject([{ scope: "agent" }, { scope: "agent" }])
  expect(await deleteStale(api, "acme", tomorrow)).toEqual([])
})

test("the end of the session by the server is said, and what is left is deleted", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const { listen } = await world.listen()
  const [app] = (await world.server.posthorn.applications.list()).data
  const key = await world.key({ name: "other", scope: "agent", appId: app!.id })
  const other = connectAgent({
    server: world.server.url,
    key,
    name: app!.uid!,
    handle() {},
    logger: "silent",
  })
  onTestFinished(() => other.close())
  expect(await listen.ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^posthorn: the session is over: another agent connected with this name.*\n$/m,
    ),
  })
  expect(await world.left()).toEqual([])
})

test("a reader that closes the pipe ends it, and nothing is left", PATIENCE, async () => {
  const world = await ListenWorld.start()
  const { listen, url } = await world.listen()
  listen.closeOutput()
  await post(url)
  expect((await listen.ended).code).toBe(0)
  expect(await world.left()).toEqual([])
})

test("errors say what to do", PATIENCE, async () => {
  const world = await ListenWorld.start()
  await world.server.posthorn.applications.create({ uid: "acme", name: "Acme" })
  const admin = 'listen needs an admin\'s key, which "posthorn keys create NAME --scope admin" makes'
  const keys = {
    app: await world.key({ name: "app", scope: "application", appId: "acme" }),
    read: await world.key({ name: "read", scope: "read" }),
    agent: await world.key({ name: "agent", scope: "agent", appId: "acme" }),
  }
  const tls = new Authority().selfSigned("hooks", "IP:127.0.0.1")
  const proxy = createTlsServer(tls, (_request, response) => response.end())
  onTestFinished(() => void proxy.close())
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  const secure = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const problems: readonly (readonly [args: readonly string[], code: number, said: string])[] = [
    [
      ["--key", "ph_wrong"],
      1,
      "the server does not take this key: Invalid token; check --key or POSTHORN_API_KEY",
    ],
    [["--key", keys.app], 1, `this needs a key of the whole organization; ${admin}`],
    [["--key", keys.app, "--app", "acme"], 1, `; ${admin}`],
    [["--key", keys.read], 1, `this key can only read; ${admin}`],
    [["--key", keys.agent], 1, `an agent's key can only connect an agent, to /api/v1/relay; ${admin}`],
    [
      ["--server", nowhere],
      1,
      `the server cannot be reached: ${nowhere} refused the connection; does it run, and is --server (POSTHORN_SERVER) its address?`,
    ],
    [
      ["--server", secure],
      1,
      `the server cannot be reached: the certificate of ${secure} is refused: no authority that this machine trusts has signed it (DEPTH_ZERO_SELF_SIGNED_CERT); give its authority with NODE_EXTRA_CA_CERTS=FILE`,
    ],
    [["--app", "nobody"], 1, 'there is no application "nobody"'],
    [["--verify", "github"], 1, "--secret is required: what the provider signs with, for the scheme github"],
    [["--verify", "svn"], 2, "--verify must be one of standard-webhooks, "],
    [["--only", "push"], 2, "--only needs the event type of each webhook"],
    [["--store", "sqlite:x.db"], 2, "unknown flag --store"],
  ]
  for (const [args, code, said] of problems) {
    const result = await world.desk.posthorn(["listen", "--forward", world.forward, ...args])
    expect(result).toEqual({ code, stdout: "", stderr: expect.stringMatching(/^posthorn: .*\n$/) })
    expect(result.stderr).toContain(said)
  }
  expect(await world.left()).toEqual([])
  const elsewhere = new Desk()
  expect(await elsewhere.posthorn(["listen", "--forward", world.forward])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^posthorn: listen needs a server: start one with posthorn serve, and give its URL/,
    ),
  })
  expect(await world.desk.posthorn(["listen", "--forward", "localhost:3000"])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^posthorn: --forward must be a URL such as http:\/\/localhost:3000/),
  })
  expect(await world.desk.posthorn(["listen"])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^posthorn: --forward is missing/),
  })
})
