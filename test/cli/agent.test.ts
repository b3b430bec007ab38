/** `posthorn agent` as it is typed, against a relay that the test plays. */
import { expect, onTestFinished, test } from "vitest"
import { Authority } from "../egress/certificates.ts"
import { FakeRelay, type FakeRelayOptions } from "../support/fake-relay.ts"
import { Receiver } from "../support/receiver.ts"
import { Desk } from "./posthorn.ts"

const PATIENCE = { timeout: 60_000 }
const KEY = { POSTHORN_API_KEY: "ph_1_secret" }

async function world(options: FakeRelayOptions = {}) {
  const relay = await FakeRelay.start(options)
  const local = await Receiver.start()
  onTestFinished(() => local.close())
  const desk = new Desk(KEY)
  const forward = local.url("/").slice(0, -1)
  const args = ["agent", "--server", relay.url, "--name", "hub", "--forward", forward]
  return { relay, local, forward, desk, args, connected: `Connected to 127.0.0.1:${relay.port} as hub;` }
}

test("each webhook is forwarded and a line", PATIENCE, async () => {
  const { relay, local, desk, args, connected } = await world()
  local.queue("/orders?secret=1", 200, 422, 503)
  const agent = desk.start(args)
  const link = await relay.link()
  await agent.said(connected)
  expect(relay.requests[0]!.headers.authorization).toBe("Bearer ph_1_secret")
  for (let attempt = 1; attempt <= 3; attempt++) {
    link.event({ path: "/orders", query: "?secret=1", attempt })
    link.settle(await link.ack(attempt))
    await agent.wrote(new RegExp(`attempt ${attempt}$`))
  }
  const time = "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"
  const line = (text: string) =>
    expect.stringMatching(new RegExp(`${time}  invoice\\.paid  POST /orders  ${text}$`))
  expect(agent.lines).toEqual([
    line("HTTP 200 in \\d+ ms  attempt 1"),
    line("HTTP 422 in \\d+ ms; the webhook is rejected  attempt 2"),
    line("HTTP 503 in \\d+ ms; the webhook is tried again  attempt 3"),
  ])
  agent.interrupt()
  const { code, stdout } = await agent.ended
  expect([code, stdout.includes("\x1b")]).toEqual([0, false])
  expect(link.frames.at(-1)).toEqual({ kind: "drain" })
  expect(link.closed).toMatchObject({ code: 1000 })
})

test(
  "a local program that is down is a line that says so, and --json has the same fields",
  PATIENCE,
  async () => {
    const { relay, desk } = await world()
    const start = (...more: string[]) =>
      desk.start([
        "agent",
        "--server",
        relay.url,
        "--name",
        "hub",
        "--forward",
        "http://127.0.0.1:1",
        ...more,
      ])
    const agent = start()
    const first = await relay.link()
    first.event()
    await agent.wrote(
      /POST \/ {2}http:\/\/127\.0\.0\.1:1 refused the connection; the webhook is tried again {2}attempt 1$/,
    )
    const json = start("--json")
    const second = await relay.link(2)
    second.event({ id: "dlv_json", messageId: "msg_json" })
    await json.wrote(/^\{.*\}$/)
    expect(JSON.parse(json.lines[0]!)).toEqual({
      at: expect.any(String),
      delivery_id: "dlv_json",
      message_id: "msg_json",
      event_type: "invoice.paid",
      method: "POST",
      path: "",
      attempt: 1,
      result: "transient",
      status: null,
      error: "http://127.0.0.1:1 refused the connection",
      duration_ms: expect.any(Number),
      repeated: false,
    })
  },
)

test("the first signal finishes what is in flight, the second ends it at once", PATIENCE, async () => {
  const { relay, local, desk, args } = await world()
  const release = local.hold("/slow")
  const interrupted = async (n: number) => {
    const agent = desk.start(args)
    const link = await relay.link(n)
    link.event({ path: "/slow" })
    await local.arrived("/slow", n)
    agent.interrupt()
    await agent.said("Got SIGINT: finishes the webhooks in flight. A second signal ends it at once.")
    return { agent, link }
  }
  const first = await interrupted(1)
  first.agent.interrupt()
  expect((await first.agent.ended).code).toBe(130)
  const { agent, link } = await interrupted(2)
  release(200)
  link.settle(await link.ack())
  expect(await agent.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("HTTP 200") })
})

test("a lost connection is said, and made again", PATIENCE, async () => {
  const { relay, desk, args, connected } = await world()
  const agent = desk.start(args)
  const link = await relay.link()
  await agent.said(connected)
  link.cut()
  await agent.said("Not connected: the connection broke off. The next try is in ")
  const second = await relay.link(2)
  second.event()
  await agent.wrote(/HTTP 200/)
})

test("a refusal ends it with a sentence and the code 1", PATIENCE, async () => {
  const { relay, desk, args } = await world()
  relay.refuse({ status: 401, body: '{"code":"authentication_failed","detail":"The key was revoked."}' })
  expect(await desk.posthorn(args)).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(
      /^posthorn: ws:\S+ does not take the key: The key was revoked\. It is wrong, .*\n$/,
    ),
  })
})

test(
  "an unknown certificate is said with what to do, and --ca trusts it; the key may be in a file",
  PATIENCE,
  async () => {
    const tls = new Authority().selfSigned("relay", "IP:127.0.0.1")
    const { relay, desk, args, connected } = await world({ tls })
    const refused = desk.start(args)
    await refused.said("or with the agent's own --ca FILE. The next try is in ")
    desk.write("ca.pem", tls.cert)
    desk.write("agent.key", "ph_2_other\n")
    const agent = desk.start([...args, "--ca", "ca.pem", "--key-file", "agent.key"])
    await agent.said(connected)
    expect(relay.requests.at(-1)!.headers.authorization).toBe("Bearer ph_2_other")
  },
)

test("mistakes of the command line are said before anything connects", PATIENCE, async () => {
  const { relay, desk } = await world()
  const right = { server: relay.url, name: "hub", forward: "http://localhost:3000" }
  const agent = (changes: { readonly [flag: string]: string }, environment = {}) => {
    const flags = Object.entries({ ...right, ...changes }).filter(([, value]) => value !== "-")
    return desk.posthorn(["agent", ...flags.map(([flag, value]) => `--${flag}=${value}`)], { environment })
  }
  for (const [changes, said] of [
    [{ server: "-" }, "--server is missing: give the server's URL, such as wss://hooks.example.com"],
    [{ server: "hooks.example.com" }, "--server must be a URL such as wss://hooks.example.com"],
    [{ name: "-" }, "--name is missing"],
    [{ name: "Hub" }, "--name must be 1 to 63 characters of a-z, 0-9 and -"],
    [{ forward: "-" }, "--forward is missing"],
    [{ forward: "localhost:3000" }, "--forward must be a URL such as http://localhost:3000"],
    [{ credit: "17" }, "--credit must be a whole number between 1 and 16"],
    [{ "max-frame-bytes": "1" }, "--max-frame-bytes must be a whole number between"],
    [{ ca: "none.pem" }, "--ca none.pem cannot be read"],
    [{ "key-file": "none" }, "--key-file none cannot be read"],
  ] as const)
    expect(await agent(changes)).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(`posthorn: ${said}`),
    })
  expect(await agent({}, { POSTHORN_API_KEY: " " })).toMatchObject({
    code: 2,
    stderr: "posthorn: the agent needs a key: set POSTHORN_API_KEY, or name a file with --key-file\n",
  })
  expect(relay.requests).toEqual([])
})

test("a key that would travel in the clear is warned of", PATIENCE, async () => {
  const { desk } = await world()
  const agent = desk.start([
    "agent",
    "--server",
    "ws://no-such-host.invalid",
    "--name",
    "hub",
    "--forward",
    "http://localhost:3000",
  ])
  await agent.said(
    "Warning: the key and all webhooks travel to no-such-host.invalid in the clear: use wss://",
  )
  await agent.said("Not connected: the name in http://no-such-host.invalid cannot be resolved")
})
