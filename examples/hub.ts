/**
 * A hub that no provider can connect to: it connects outward, handles each webhook, and says what became of it.
 *
 *   npm start                                          # a server, with POSTHORN_API_KEY for the command line
 *   node bin/posthorn.mjs apps create Home --uid home
 *   node bin/posthorn.mjs sources create home doorbell --scheme none     # prints the URL for the provider
 *   node bin/posthorn.mjs endpoints create home relay://hub --ordered
 *   node bin/posthorn.mjs keys create hub --scope agent --app home       # prints the key of the hub
 *   POSTHORN_SERVER=http://localhost:8071 HUB_KEY=ph_… node examples/hub.ts
 */
// An installed program writes: from "posthorn"
import { type AgentEvent, connectAgent } from "../src/index.ts"

const { POSTHORN_SERVER: server = "http://localhost:8071", HUB_KEY: key = "" } = process.env

function handle({ eventType, method, path, body }: AgentEvent) {
  console.log(`${eventType}: ${method} ${path}`)
  try {
    const { door } = JSON.parse(Buffer.from(body).toString()) as { door?: string }
    if (door === undefined) return { status: 422, error: "which door?" }
    console.log(`opening the ${door} door`)
    return { status: 200 }
  } catch {
    // It would be no JSON the next time either. An error that is thrown is tried again.
    return "permanent"
  }
}

const agent = connectAgent({
  server,
  key,
  name: "hub",
  handle,
  onConnected: () => console.log("connected"),
  onDisconnected: ({ reason }) => console.log(`not connected: ${reason}`),
  onSettled: ({ status }) => console.log(`settled: ${status}`),
})

// Finishes what is in flight. What waits stays on the server.
process.once("SIGTERM", () => void agent.close())
process.once("SIGINT", () => void agent.close())
const error = await agent.closed
if (error !== null) console.error(error.message)
process.exitCode = error === null ? 0 : 1
