/**
 * The relay: from a POST to a source to the receipt by a program behind an agent, against POST …/msg to receipt over HTTP. And the memory
 * of a thousand agents that are connected and get nothing.
 */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Program } from "../../test/support/process.ts"
import type { AgentSettings } from "../children/agents.ts"
import { PosthornServer } from "../harness/api-servers.ts"
import type { Bench, Part, Values } from "../harness/bench.ts"
import { compared } from "../harness/compared.ts"
import { prepareInbound, prepareMessage } from "../harness/prepared.ts"
import { RawClient } from "../harness/raw-client.ts"
import { perSecond, race, timed } from "../harness/rounds.ts"
import { NODE_OPTIONS } from "../harness/settings.ts"
import { median, percentile } from "../harness/statistics.ts"
import { latencies } from "./latency.ts"

const ENDPOINTS = 100
const IDLE_AGENTS = 1000
const MOST_PER_SECOND = 100_000

async function measure(bench: Bench): Promise<Values> {
  const server = await PosthornServer.start()
  try {
    await server.createApplication("busy", ENDPOINTS, `${bench.receiver.origin}/ok`)
    await server.createApplication("hub", 0, "")
    await server.post("/app/hub/endpoint", { url: "relay://hub" })
    const verification = { scheme: "none" }
    const source = await server.post<{ url: string }>("/app/hub/source", {
      name: "bench",
      verification,
      rateLimit: MOST_PER_SECOND,
    })
    const hub = await startAgents(bench, server, ["hub"])
    const relayed = await RawClient.open(prepareInbound(server.origin, new URL(source.url).pathname))
    const { origin, key } = server
    const path = "/api/v1/app/busy/msg"
    const sent = await RawClient.open(prepareMessage({ origin, key, path, endpoints: ENDPOINTS }))
    const through = (client: RawClient) => async (count: number) => {
      const expected = await bench.receiver.expect(count)
      return timed(count, async () => {
        await client.post(expected.from, count)
        await expected.complete()
      })
    }
    const rounds = await race({ relay: through(relayed), api: through(sent) }, bench.turns)
    const half = median(perSecond(rounds.relay)) / 2
    const times = await latencies(bench, (ordinal) => relayed.postOne(ordinal), half, bench.size(60, 1))
    for (const client of [relayed, sent]) client.close()
    await hub.kill()
    return {
      ...compared("relay", rounds.relay, "api", rounds.api),
      "relay.half.p50ms": percentile(times, 50),
      "relay.half.p99ms": percentile(times, 99),
      "relay.half.perSecond": half,
      ...(await measureIdle(bench, server)),
    }
  } finally {
    await server.close()
  }
}

async function measureIdle(bench: Bench, server: PosthornServer): Promise<Values> {
  const names = Array.from({ length: IDLE_AGENTS }, (_, i) => `idle-${i}`)
  for (const name of names) await server.post("/app/hub/endpoint", { url: `relay://${name}` })
  const before = residentMb(server.pid)
  const agents = await startAgents(bench, server, names)
  const after = residentMb(server.pid)
  await agents.kill()
  return { "relay.idle.mb": after - before, "relay.idle.agents": IDLE_AGENTS }
}

async function startAgents(bench: Bench, server: PosthornServer, names: string[]): Promise<Program> {
  const { token: key } = await server.post<{ token: string }>("/key", {
    name: "hub",
    scope: "agent",
    appId: "hub",
  })
  const settings: AgentSettings = { server: server.origin, key, forward: bench.receiver.origin, names }
  const program = Program.start(
    new URL("../children/agents.ts", import.meta.url),
    [JSON.stringify(settings)],
    {
      talks: true,
      nodeOptions: NODE_OPTIONS,
    },
  )
  await once(program.process, "message")
  return program
}

function residentMb(pid: number): number {
  const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))!
  return Number(kb) / 1024
}

export const relayPart: Part = {
  names: ["relay.ratio", "relay.half.p99ms", "relay.idle.mb"],
  isAside: true,
  run: measure,
}
