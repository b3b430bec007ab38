/** `posthorn agent` in a real terminal: its output for a new user, and the advice in its errors. */
import { expect, onTestFinished, test } from "vitest"
import { Authority } from "../egress/certificates.ts"
import { FakeRelay } from "../support/fake-relay.ts"
import { Receiver } from "../support/receiver.ts"
import { freePort } from "../support/servers/port.ts"
import { ListenWorld } from "./listening.ts"

const PATIENCE = { timeout: 120_000 }
const SIZE = { columns: 140, rows: 24 }

/** A server with the endpoint of an agent, whose key is in a file. */
async function start() {
  const world = await ListenWorld.start()
  const { posthorn, url } = world.server
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  const retry = { delays: [0.2], then: 0.2, maxAge: 3600, breaker: false }
  const { id } = await posthorn.endpoints.create("acme", { url: "relay://hub", retry })
  world.desk.write("hub.key", await world.key({ name: "hub", scope: "agent", appId: "acme" }))
  const narrow = await world.key({ name: "narrow", scope: "agent", appId: "acme", endpointIds: [id] })
  world.desk.write("narrow.key", narrow)
  world.desk.write("wrong.key", `ph_${"a".repeat(16)}_${"b".repeat(40)}`)
  const agent = (forward: string, { server = url, name = "hub", key = "hub.key" } = {}) => {
    const flags = ["--server", server, "--name", name, "--forward", forward, "--key-file", key]
    return world.desk.onScreen(["agent", ...flags], SIZE)
  }
  const send = () => posthorn.send("acme", { eventType: "door.opened", payload: {} })
  return { ...world, forward: world.forward, agent, send }
}

/** Sentences are broken between words. */
const said = (sentence: string) => new RegExp(sentence.replaceAll(" ", "\\s+"))

test(
  "a program that is down is said, webhooks go on when it is up, and Ctrl-C ends it",
  PATIENCE,
  async () => {
    const { agent, send } = await start()
    const port = await freePort()
    const screen = agent(`http://127.0.0.1:${port}`)
    await screen.shows(/^Connected to 127\.0\.0\.1:\d+ as hub; Ctrl-C ends it\.$/m)
    await send()
    await screen.shows(
      said(
        `door\\.opened POST / http://127\\.0\\.0\\.1:${port} refused the connection; the webhook is tried again`,
      ),
    )
    const local = await Receiver.start(port)
    onTestFinished(() => local.close())
    await screen.shows(/door\.opened {2}POST \/ {2}HTTP 200 in \d+ ms {2}attempt \d+$/m)
    screen.press("C-c")
    await screen.shows(
      said("Got SIGINT: finishes the webhooks in flight\\. A second signal ends it at once\\."),
    )
    expect(await screen.ended()).toBe(0)
  },
)

test.each([
  [
    "a wrong key",
    { key: "wrong.key" },
    'does not take the key: .* It is wrong, expired or revoked; an administrator makes one with "posthorn keys create NAME --scope agent --app APP"',
  ],
  [
    "a key of other endpoints",
    { key: "narrow.key", name: "other" },
    "the server refuses the key: the key reaches no endpoint with the URL relay://other; an administrator makes one",
  ],
])("%s ends it, and the sentence says what to do", PATIENCE, async (_what, options, sentence) => {
  const { agent, forward } = await start()
  const screen = agent(forward, options)
  await screen.shows(said(sentence))
  expect(await screen.ended()).toBe(1)
})

test(
  "no server and a certificate that is refused are said with what to do, and it goes on trying",
  PATIENCE,
  async () => {
    const { agent, forward } = await start()
    const nobody = agent(forward, { server: `http://127.0.0.1:${await freePort()}` })
    await nobody.shows(
      said(
        "refused the connection; check that the server runs, and that this is its address\\. The next try is in \\d+s\\.",
      ),
    )
    await nobody.shows(/^Still not connected\. The next try is in \d+s\.$/m)
    const relay = await FakeRelay.start({ tls: new Authority().selfSigned("relay", "IP:127.0.0.1") })
    const refused = agent(forward, { server: relay.url })
    await refused.shows(
      said(
        "is refused: no authority that this machine trusts has signed it \\(\\w+\\); give its authority with NODE_EXTRA_CA_CERTS=FILE, or with the agent's own --ca FILE\\.",
      ),
    )
    for (const screen of [nobody, refused]) {
      screen.press("C-c")
      expect(await screen.ended()).toBe(0)
    }
  },
)
