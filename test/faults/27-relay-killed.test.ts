/** Fault 27 on SQLite: `kill -9` of the server and of the agent in turn. Over several processes: test/multi-process/relay.test.ts. */
import { expect, onTestFinished, test } from "vitest"
import { Api } from "../../src/cli/api.ts"
import { HttpClient } from "../../src/cli/http-client.ts"
import { addressOf, serve, start } from "../api/support/serving.ts"
import { temporaryFolder } from "../support/harness.ts"
import { counted } from "../support/hub.ts"
import { rounds } from "../support/length.ts"
import { Receiver } from "../support/receiver.ts"
import { freePort } from "../support/servers/port.ts"

const KILLS = rounds(6, 60)
const BATCH = 5
const MESSAGES = (KILLS + 1) * BATCH
const KEY = "a-key-from-the-operators-vault"

async function world() {
  const local = await Receiver.start()
  onTestFinished(() => local.close())
  const folder = temporaryFolder()
  const port = `${await freePort()}`
  const url = `http://127.0.0.1:${port}`
  const startServer = async () => {
    const program = serve([], { PORT: port, POSTHORN_API_KEY: KEY }, folder)
    await addressOf(program)
    return program
  }
  const server = await startServer()
  const api = new Api(new HttpClient(url, KEY))
  await api.post("/app", { name: "Acme", uid: "acme" })
  await api.post("/app/acme/endpoint", { url: "relay://hub", retry: "relay" })
  const { token } = await api.post<{ token: string }>("/key", { name: "hub", scope: "agent", appId: "acme" })
  const startAgent = async () => {
    const forward = ["--forward", local.url("/hub")]
    const program = start(["agent", "--server", url, "--name", "hub", ...forward], {
      POSTHORN_API_KEY: token,
    })
    await program.line(/^Connected/)
    return program
  }
  const send = async (from: number) => {
    for (const n of counted(from, from + BATCH - 1))
      await api.post("/app/acme/msg", { eventType: "door.opened", payload: { n } })
  }
  return { local, server, startServer, startAgent, send, api }
}

test(`${KILLS} kills at random moments lose nothing, keep the order, and repeat what was in flight only`, async () => {
  const { local, startServer, startAgent, send, api, ...first } = await world()
  let { server } = first
  let agent = await startAgent()
  /** How many requests had come when the agent was killed. */
  const agentKilledAt: number[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const before = local.to("/hub").length
    await send(kill * BATCH + 1)
    await local.arrived("/hub", before + 1 + Math.floor(Math.random() * (BATCH - 1)))
    if (kill % 2 === 0) {
      await server.kill()
      server = await startServer()
    } else {
      await agent.kill()
      agentKilledAt.push(local.to("/hub").length)
      agent = await startAgent()
    }
  }
  await send(KILLS * BATCH + 1)
  await expect
    .poll(() => api.get("/stats/delivery"), { timeout: 60_000 })
    .toMatchObject({ delivered: MESSAGES, dead: 0 })
  const runs = local.to("/hub").map(({ body, headers }) => ({
    n: JSON.parse(String(body)).n as number,
    id: headers["posthorn-message-id"],
  }))
  expect([...new Set(runs.map(({ n }) => n))]).toEqual(counted(1, MESSAGES))
  // An agent remembers outcomes that a killed server did not settle. A killed agent remembers nothing, and has one event in hand.
  expect(runs.length).toBeLessThanOrEqual(MESSAGES + agentKilledAt.length)
  for (const [repeat, { n }] of runs.entries()) {
    const earlier = runs.findLastIndex((run, i) => i < repeat && run.n === n)
    if (earlier >= 0) expect(agentKilledAt.some((at) => earlier < at && at <= repeat)).toBe(true)
  }
  expect(new Set(runs.map(({ n, id }) => `${n} ${id}`)).size).toBe(MESSAGES)
  // A request that a kill cut off is no attempt.
  const { data } = await api.get<{ data: { attemptCount: number }[] }>("/delivery", { limit: 250 })
  for (const { attemptCount } of data) expect(attemptCount).toBe(1)
}, 120_000)
